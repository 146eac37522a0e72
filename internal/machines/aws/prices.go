package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
)

// Prices is what machines cost by the hour in one region, on demand, in US
// dollars, before tax.
type Prices struct {
	Region  string             `json:"region"`
	PerHour map[string]float64 `json:"per_hour"` // instance type -> price
	Disk    *prices.Disk       `json:"disk,omitempty"`
	Address float64            `json:"address_per_hour"` // of a public IPv4 address; 0: not known
	Source  string             `json:"source"`
	Date    string             `json:"date"`
	Live    bool               `json:"live"`            // from AWS's price list, now
	Notes   []string           `json:"notes,omitempty"` // for the user, one sentence each

	from map[string]string // what has the price of another region -> that region
}

// LiveSource is the source of prices that AWS's price list gave.
const LiveSource = "AWS price list, EC2 on-demand, Linux, shared tenancy"

// pricesTimeout bounds asking the price list: there is a table to fall back on.
const pricesTimeout = 45 * time.Second

// FromTable takes the prices of the types from a table. Where it has none of the
// region the dearest of another one stands in, which Source and Notes say. Types
// that it has no price for at all are absent.
func FromTable(table prices.Table, region string, instanceTypes []string) Prices {
	p := Prices{Region: region, PerHour: map[string]float64{}, Source: table.Source, Date: table.Date, Address: table.AddressPerHour}
	for _, t := range instanceTypes {
		if from, ok := dearest(table.Instances[t].PerHour, region, func(v float64) float64 { return v }); ok {
			p.PerHour[t] = table.Instances[t].PerHour[from]
			p.standIn(t, from, table.Date)
		}
	}
	if from, ok := dearest(table.Disks, region, func(d prices.Disk) float64 { return d.GiBMonth }); ok {
		d := table.Disks[from]
		p.Disk = &d
		p.standIn(disks, from, table.Date)
	}
	return p
}

// disks is what notes call volumes.
const disks = "gp3 volumes"

// dearest is the region, or else the one of those in a table that is the dearest.
func dearest[V any](of map[string]V, region string, price func(V) float64) (string, bool) {
	if _, ok := of[region]; ok {
		return region, true
	}
	best := ""
	for _, r := range slices.Sorted(maps.Keys(of)) {
		if best == "" || price(of[r]) > price(of[best]) {
			best = r
		}
	}
	return best, best != ""
}

// estimated marks the source of prices of which some are of another region.
const estimated = "; an estimate, with prices of other regions"

// standIn says that the price of something is that of another region.
func (p *Prices) standIn(what, from, date string) {
	if from == p.Region {
		return
	}
	if p.from == nil {
		p.from = map[string]string{}
		p.Source += estimated
	}
	p.from[what] = from
	p.Notes = append(p.Notes, fmt.Sprintf("the table of %s has no price of %s in %s; that of %s, the dearest in it, stands in, so that the sum is an estimate and may be too low", date, what, p.Region, from))
}

// Prices asks AWS's price list, and takes from the table what the list does not
// say or when it cannot be asked. The only error is that of an ended context.
func (c *Client) Prices(ctx context.Context, instanceTypes []string, table prices.Table) (Prices, error) {
	fallback := FromTable(table, c.Region, instanceTypes)
	p, err := c.live(ctx, instanceTypes)
	if ctx.Err() != nil {
		return Prices{}, fmt.Errorf("asking for prices: %w", ctx.Err())
	}
	if err != nil {
		reason := explain(err, c.profile)
		if denied(err) {
			reason = errors.New("the AWS identity may not (pricing:GetProducts)")
		}
		fallback.Notes = append([]string{fmt.Sprintf("AWS's price list could not be asked: %v; prices are from the table of %s", reason, table.Date)}, fallback.Notes...)
		return fallback, nil
	}
	for _, t := range instanceTypes {
		if v, ok := fallback.PerHour[t]; ok && p.PerHour[t] == 0 {
			p.PerHour[t] = v
			p.Notes = append(p.Notes, fmt.Sprintf("AWS's price list has no price of %s in %s; it is from the table of %s", t, c.Region, table.Date))
			if from, ok := fallback.from[t]; ok {
				p.standIn(t, from, table.Date)
			}
		}
	}
	if p.Disk == nil {
		p.Disk = fallback.Disk
		if from, ok := fallback.from[disks]; ok {
			p.standIn(disks, from, table.Date)
		}
	}
	if p.Address == 0 {
		p.Address = fallback.Address
	}
	return p, nil
}

// live asks the price list for the types, for gp3 volumes and for addresses.
func (c *Client) live(ctx context.Context, instanceTypes []string) (Prices, error) {
	ctx, cancel := context.WithTimeout(ctx, pricesTimeout)
	defer cancel()
	p := Prices{Region: c.Region, PerHour: map[string]float64{}, Source: LiveSource, Live: true}
	for _, t := range instanceTypes {
		filters := append(slices.Clone(plainInstances), match("instanceType", t))
		err := c.products(ctx, "AmazonEC2", filters, func(x product) {
			if x.instanceType() == t {
				p.PerHour[t] = max(p.PerHour[t], x.USD)
				p.Date = max(p.Date, x.Published)
			}
		})
		if err != nil {
			return p, err
		}
	}
	if len(p.PerHour) == 0 && len(instanceTypes) > 0 {
		return p, fmt.Errorf("it has no price of %s in %s", strings.Join(instanceTypes, ", "), c.Region)
	}
	var disk prices.Disk
	if err := c.products(ctx, "AmazonEC2", []types.Filter{match("volumeApiName", "gp3")}, func(x product) { x.disk(&disk) }); err != nil {
		return p, err
	}
	if disk.GiBMonth > 0 && disk.IOPSMonth > 0 && disk.MiBSMonth > 0 {
		p.Disk = &disk
	}
	err := c.products(ctx, "AmazonVPC", []types.Filter{match("group", "VPCPublicIPv4Address")}, func(x product) { p.Address = max(p.Address, x.address()) })
	if p.Date == "" {
		p.Date = c.now().UTC().Format(time.DateOnly)
	}
	return p, err
}

// plainInstances filters the price list down to what an hour of a Linux
// instance costs.
var plainInstances = []types.Filter{
	match("operatingSystem", "Linux"), match("tenancy", "Shared"), match("capacitystatus", "Used"),
	match("preInstalledSw", "NA"),
}

func match(field, value string) types.Filter {
	return types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
}

// pricingRegion is where the price list of a region is asked for: the service
// answers in three regions only, for all of them, and in China for China.
func pricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	}
	return "us-east-1"
}

// products goes through the entries of the price list in the client's region
// that match. Entries without an on-demand price are passed over.
func (c *Client) products(ctx context.Context, service string, filters []types.Filter, each func(product)) error {
	client := pricing.NewFromConfig(c.cfg, func(o *pricing.Options) { o.Region = pricingRegion(c.Region) })
	pages := pricing.NewGetProductsPaginator(client, &pricing.GetProductsInput{
		ServiceCode: aws.String(service), FormatVersion: aws.String("aws_v1"),
		Filters: append(slices.Clone(filters), match("regionCode", c.Region)),
	}, func(o *pricing.GetProductsPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, text := range page.PriceList {
			if x, err := parseProduct(text); err == nil {
				each(x)
			}
		}
	}
	return nil
}

// PriceTable makes a table for planning out of AWS's price list and the
// instance types of the client's region: every type with a plain on-demand
// price that percore can measure on.
func (c *Client) PriceTable(ctx context.Context) (prices.Table, error) {
	t := prices.Table{Currency: "USD", Source: LiveSource, Instances: map[string]prices.Instance{}}
	per := map[string]float64{}
	err := c.products(ctx, "AmazonEC2", plainInstances, func(x product) {
		if name := x.instanceType(); name != "" {
			per[name] = max(per[name], x.USD)
			t.Date = max(t.Date, x.Published)
		}
	})
	if err != nil {
		return t, fmt.Errorf("asking AWS's price list for %s: %w", c.Region, explain(err, c.profile))
	}
	if len(per) == 0 {
		return t, fmt.Errorf("AWS's price list has no instance in %s", c.Region)
	}
	all, err := c.describeTypes(ctx, nil)
	if err != nil {
		return t, err
	}
	for _, name := range slices.Sorted(maps.Keys(per)) {
		x, ok := all[name]
		if !ok || x.burstable || x.Arch == "" || x.Cores < 1 || x.VCPUs < x.Cores || x.MemoryMiB < 1 {
			continue
		}
		i := prices.Instance{Arch: "x86_64", VCPUs: x.VCPUs, Cores: x.Cores, MemoryGiB: float64(x.MemoryMiB) / 1024, PerHour: map[string]float64{c.Region: per[name]}}
		if x.Arch == "arm64" {
			i.Arch = "arm64"
		}
		t.Instances[name] = i
	}
	if t.Date == "" {
		t.Date = c.now().UTC().Format(time.DateOnly)
	}
	return t, nil
}

// Item is one line of an estimate.
type Item struct {
	What    string  `json:"what"`
	Count   int     `json:"count"`
	PerHour float64 `json:"usd_per_hour"` // of all of them
}

// Estimate is what the machines of a request cost.
type Estimate struct {
	Items    []Item   `json:"items"`
	PerHour  float64  `json:"usd_per_hour"`
	Total    float64  `json:"usd"`                // for the duration asked about
	Unpriced []string `json:"unpriced,omitempty"` // what has no price and is left out
}

// Estimate adds up what the machines cost by the hour and for a duration.
// Traffic within the zone costs nothing; traffic to the internet is left out.
func (p Prices) Estimate(r Request, d time.Duration) Estimate {
	var e Estimate
	missing := func(what string) {
		if !slices.Contains(e.Unpriced, what) {
			e.Unpriced = append(e.Unpriced, what)
		}
	}
	for _, m := range r.Machines {
		if v, ok := p.PerHour[m.Type]; ok {
			e.Items = append(e.Items, Item{m.Type + " (" + string(m.Role) + ")", m.Count, v * float64(m.Count)})
		} else {
			missing(m.Type)
		}
	}
	for _, m := range r.Machines {
		if p.Disk == nil {
			missing(disks)
			break
		}
		disk := m.Disk.Filled()
		e.Items = append(e.Items, Item{fmt.Sprintf("gp3 volume, %d GiB (%s)", disk.SizeGiB, m.Role), m.Count, p.diskPerHour(disk) * float64(m.Count)})
	}
	if n := r.Count(); p.Address > 0 {
		e.Items = append(e.Items, Item{"public IPv4 address", n, p.Address * float64(n)})
	} else {
		missing("public IPv4 addresses")
	}
	for _, i := range e.Items {
		e.PerHour += i.PerHour
	}
	e.Total = e.PerHour * d.Hours()
	return e
}

func (p Prices) diskPerHour(d plan.Disk) float64 {
	return p.Disk.PerHour(d.SizeGiB, d.IOPS, d.ThroughputMiB)
}

// UnpricedTypes lists the types of a request that have no price: without one
// nobody can be told what a run costs.
func (p Prices) UnpricedTypes(r Request) []string {
	return slices.DeleteFunc(r.Types(), func(t string) bool { return p.PerHour[t] > 0 })
}

// Meter says what machines have cost so far.
type Meter struct {
	PerHour float64   // US dollars
	Since   time.Time // when they were started; zero: they were not
}

// Cost is what they cost until now, in US dollars.
func (m Meter) Cost(now time.Time) float64 {
	if m.Since.IsZero() || now.Before(m.Since) {
		return 0
	}
	return m.PerHour * now.Sub(m.Since).Hours()
}
