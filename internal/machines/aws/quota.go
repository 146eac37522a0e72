package aws

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/percore/percore/internal/base/fail"
)

// quota is one limit on running on-demand vCPUs, as Service Quotas numbers it.
type quota struct{ code, name string }

var standard = quota{"L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"}

// others are the families with a limit of their own, by the letters before the
// generation.
var others = map[string]quota{
	"f":    {"L-74FC7D96", "Running On-Demand F instances"},
	"g":    {"L-DB2E81BA", "Running On-Demand G and VT instances"},
	"gr":   {"L-DB2E81BA", "Running On-Demand G and VT instances"},
	"vt":   {"L-DB2E81BA", "Running On-Demand G and VT instances"},
	"p":    {"L-417A185B", "Running On-Demand P instances"},
	"x":    {"L-7295265B", "Running On-Demand X instances"},
	"inf":  {"L-1945791B", "Running On-Demand Inf instances"},
	"trn":  {"L-2C3B7624", "Running On-Demand Trn instances"},
	"dl":   {"L-6E869C2A", "Running On-Demand DL instances"},
	"hpc":  {"L-F7808C92", "Running On-Demand HPC instances"},
	"u":    {"L-43DA4232", "Running On-Demand High Memory instances"},
	"mac":  {},
	"macm": {},
}

var familyLetters = regexp.MustCompile(`^[a-z]+`)

// quotaOf names the limit that counts an instance type; none for a type that
// only comes on hosts of one's own.
func quotaOf(instanceType string) (quota, bool) {
	q, ok := others[familyLetters.FindString(instanceType)]
	if !ok {
		return standard, true
	}
	return q, q.code != ""
}

// quotas compares what is asked for, and what runs, with what may run.
func (c *Client) quotas(ctx context.Context, r Request, of map[string]Type) ([]Quota, []string, error) {
	asked := map[string]*Quota{}
	for _, m := range r.Machines {
		q, ok := quotaOf(m.Type)
		if !ok {
			return nil, nil, fail.Input("the instance type %s of role %s runs on dedicated hosts only", m.Type, m.Role).Try("take another, such as c8g.xlarge")
		}
		if asked[q.code] == nil {
			asked[q.code] = &Quota{Code: q.code, Name: q.name}
		}
		asked[q.code].Asked += m.Count * of[m.Type].VCPUs
	}
	codes := slices.Sorted(maps.Keys(asked))
	client := servicequotas.NewFromConfig(c.cfg)
	var warnings []string
	for _, code := range codes {
		q := asked[code]
		out, err := client.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(code)})
		switch {
		case ctx.Err() != nil:
			return nil, nil, fmt.Errorf("reading the quota of vCPUs: %w", ctx.Err())
		case denied(err):
			warnings = append(warnings, fmt.Sprintf("whether the quota %q leaves room for %d vCPUs was not checked: the AWS identity may not read it (servicequotas:GetServiceQuota)", q.Name, q.Asked))
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("whether the quota %q leaves room for %d vCPUs was not checked: %v", q.Name, q.Asked, explain(err, c.profile)))
		case out.Quota == nil || out.Quota.Value == nil:
			warnings = append(warnings, fmt.Sprintf("whether the quota %q leaves room for %d vCPUs was not checked: AWS names no limit", q.Name, q.Asked))
		default:
			q.Limit, q.Checked = *out.Quota.Value, true
		}
	}
	if len(warnings) < len(codes) {
		used, err := c.used(ctx, r.RunID)
		switch {
		case denied(err):
			return nil, nil, fail.Input("the AWS identity may not list instances (ec2:DescribeInstances)").Try("give it the policy docs/iam-policy.json")
		case err != nil:
			return nil, nil, fmt.Errorf("counting the vCPUs that run in %s: %w", c.Region, explain(err, c.profile))
		}
		for code, q := range asked {
			q.InUse = used[code]
		}
	}
	var all []Quota
	for _, code := range codes {
		q := *asked[code]
		all = append(all, q)
		if err := q.refusal(c.Region); err != nil {
			return all, warnings, err
		}
	}
	return all, warnings, nil
}

// refusal says that a quota leaves no room, and where to ask for more.
func (q Quota) refusal(region string) error {
	if !q.Checked || float64(q.InUse+q.Asked) <= q.Limit {
		return nil
	}
	return fail.Input("the run needs %d vCPUs in %s, of which %d run already, and the quota %q allows %g", q.Asked, region, q.InUse, q.Name, q.Limit).Try("take fewer or smaller instances, or ask for %d at https://%s.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/%s", q.InUse+q.Asked, region, q.Code)
}

// used counts the vCPUs of the on-demand instances that run, but for those of
// one run, by quota code.
func (c *Client) used(ctx context.Context, runID string) (map[string]int, error) {
	count := map[string]int{}
	err := c.instances(ctx, []types.Filter{filter("instance-state-name", "pending", "running")}, func(i types.Instance) {
		// On demand has no word of its own; spot and scheduled have quotas of theirs.
		if i.InstanceLifecycle == "" && (runID == "" || tag(i.Tags, TagRun) != runID) {
			count[string(i.InstanceType)]++
		}
	})
	if err != nil || len(count) == 0 {
		return nil, err
	}
	all, err := c.describeTypes(ctx, slices.Sorted(maps.Keys(count)))
	if err != nil {
		return nil, err
	}
	used := map[string]int{}
	for t, n := range count {
		if q, ok := quotaOf(t); ok {
			used[q.code] += n * all[t].VCPUs
		}
	}
	return used, nil
}

// Lines says what was found, one sentence a line, for the user to read before
// anything is made.
func (rep Report) Lines(r Request) []string {
	var lines []string
	lines = append(lines, fmt.Sprintf("account %s as %s, region %s, zone %s", rep.Identity.Account, rep.Identity.ARN, rep.Region, rep.Zone))
	for _, m := range r.Machines {
		t := rep.Types[m.Type]
		line := fmt.Sprintf("%d × %s for %s: %d cores, %s GiB, %s, %s GiB gp3 disk", m.Count, m.Type, m.Role, t.Cores, gib(t.MemoryMiB), t.Network, fmt.Sprint(m.Disk.Filled().SizeGiB))
		if t.Threads > 1 {
			line += ", one thread per core"
		}
		lines = append(lines, line)
	}
	for _, a := range slices.Sorted(maps.Keys(rep.Images)) {
		lines = append(lines, fmt.Sprintf("image %s (Debian 13, %s)", rep.Images[a].ID, a))
	}
	for _, q := range rep.Quotas {
		if q.Checked {
			lines = append(lines, fmt.Sprintf("quota: %d vCPUs asked for, %d in use, %g allowed (%s)", q.Asked, q.InUse, q.Limit, q.Name))
		}
	}
	var from []string
	for _, p := range rep.SSHFrom {
		from = append(from, p.String())
	}
	lines = append(lines, "ssh is open to "+strings.Join(from, ", ")+" only")
	for _, w := range rep.Warnings {
		lines = append(lines, "note: "+w)
	}
	return lines
}

func gib(mib int) string {
	if mib%1024 == 0 {
		return fmt.Sprint(mib / 1024)
	}
	return fmt.Sprintf("%.1f", float64(mib)/1024)
}
