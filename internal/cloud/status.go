package cloud

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/percore/percore/internal/cloud/awsx"
	"github.com/percore/percore/internal/cloud/machines"
	"github.com/percore/percore/internal/fail"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/sizing"
	"github.com/percore/percore/internal/ui"
)

// Summary is one cloud run as status shows it.
type Summary struct {
	State
	Stage    string             `json:"stage"`     // the next one, or "destroyed"
	USDSpent float64            `json:"usd_spent"` // until now
	Machines []machines.Machine `json:"machines,omitempty"`
	AWS      map[string]string  `json:"aws,omitempty"` // instance id -> its state, by AWS
	Problem  string             `json:"problem,omitempty"`
}

// stage is what comes next for a run.
func (s State) stage() string {
	switch {
	case s.Destroyed != nil:
		return "destroyed"
	case s.Up == nil:
		return "up"
	case s.Prepared == nil:
		return "prepare"
	case s.Measured == nil:
		return "run"
	case s.Collected == nil:
		return "collect"
	}
	return "down"
}

// Status writes which cloud runs there are, how far they are and what they
// cost; of one run also its machines. It changes nothing.
func Status(ctx context.Context, o Options, id string, asJSON bool, w io.Writer) error {
	states, err := List(o.Results)
	if err != nil {
		return err
	}
	if id != "" {
		if id, err = Choose(o.Results, id); err != nil {
			return err
		}
		states = slices.DeleteFunc(states, func(s State) bool { return s.ID != id })
	}
	all := []Summary{}
	for _, s := range states {
		sum := Summary{State: s, Stage: s.stage(), USDSpent: s.Spent(time.Now())}
		if s.Up != nil && s.Destroyed == nil {
			sum.look(ctx, o)
		}
		all = append(all, sum)
	}
	if asJSON {
		text, err := marshal(all)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "there are no cloud runs in %s; make cloud-run or percore cloud run makes one\n", o.Results)
		return err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"run", "on", "next stage", "machines", "$ an hour", "$ so far", "expires"})
	for _, s := range all {
		expires := "never"
		if s.Expires != nil {
			expires = s.Expires.UTC().Format("2006-01-02 15:04 UTC")
			if left := time.Until(*s.Expires); s.Live() && left > 0 {
				expires += ", in " + ui.Clock(left)
			}
		}
		t.AppendRow(table.Row{s.ID, strings.TrimSpace(string(s.Provider) + " " + s.Region), s.Stage, s.count(), fmt.Sprintf("%.2f", s.USDPerHour), fmt.Sprintf("%.2f", s.USDSpent), expires})
	}
	fmt.Fprintln(w, t.Render())
	for _, s := range all {
		if s.Problem != "" {
			fmt.Fprintf(w, "%s: %s\n", s.ID, s.Problem)
		}
		if id == "" {
			continue
		}
		for _, m := range s.Machines {
			fmt.Fprintf(w, "%-6s %s%s %s\n", m.Name, m.Destination(), typed(m), s.AWS[m.InstanceID])
		}
	}
	return nil
}

func (s Summary) count() string {
	if s.AWS == nil {
		return fmt.Sprint(len(s.Machines))
	}
	running := 0
	for _, state := range s.AWS {
		if state == "running" {
			running++
		}
	}
	return fmt.Sprintf("%d, %d running", len(s.Machines), running)
}

// look asks what has become of a run's machines. What cannot be had is a
// problem to show, not an error.
func (s *Summary) look(ctx context.Context, o Options) {
	text, err := os.ReadFile(filepath.Join(o.Results, s.ID, Dir, labFile))
	if err == nil {
		var l machines.Lab
		if l, err = machines.Parse(text); err == nil {
			s.Machines = l.Machines
		}
	}
	if err == nil && s.Provider == profile.ProviderAWS {
		var c *awsx.Client
		if c, err = awsx.Open(ctx, awsx.Options{Region: s.Region, Profile: s.AWSProfile}); err == nil {
			s.AWS, err = c.Running(ctx, s.ID)
		}
	}
	if err != nil {
		s.Problem = oneLine(err)
	}
}

// SweepOptions narrow a sweep.
type SweepOptions struct {
	RunID    string // only what belongs to this run, or the beginning of its id; empty for all
	ListOnly bool   // delete nothing
}

// Sweep lists everything of percore's in a region, with age and cost, and
// deletes it once the user has said yes.
func Sweep(ctx context.Context, o Options, so SweepOptions, w io.Writer) error {
	ao := awsx.Options{Region: o.Region, Profile: o.AWSProfile, Say: o.Console.Printf}
	if o.Prices != "" {
		table, err := sizing.ReadPrices(o.Prices)
		if err != nil {
			return err
		}
		ao.Prices = &table
	}
	c, err := awsx.Open(ctx, ao)
	if err != nil {
		return err
	}
	o.Console.Status("looking for what is percore's in %s", c.Region)
	found, err := c.Find(ctx)
	if err != nil {
		return err
	}
	if so.RunID != "" {
		of, err := ofRun(found, so.RunID)
		if err != nil {
			return err
		}
		if others := len(found); len(of) == 0 && others > 0 {
			fmt.Fprintf(w, "nothing of run %s in %s; %d other thing(s) of percore's are there, which `percore cloud sweep --region %s --list` lists\n", so.RunID, c.Region, others, c.Region)
			return nil
		}
		found = of
	}
	if len(found) == 0 {
		fmt.Fprintf(w, "nothing of percore's in %s\n", c.Region)
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"what", "id", "run", "age", "expires", "$ an hour", "$ so far"})
	var perHour, spent float64
	for _, r := range found {
		age, expires := "", ""
		if !r.Created.IsZero() {
			age = ui.Clock(time.Since(r.Created))
		}
		if !r.Expires.IsZero() {
			expires = r.Expires.UTC().Format("2006-01-02 15:04 UTC")
		}
		t.AppendRow(table.Row{r.Kind, r.ID, r.RunID, age, expires, dollars(r.PerHour), dollars(r.Cost)})
		perHour, spent = perHour+r.PerHour, spent+r.Cost
	}
	t.AppendFooter(table.Row{"in all", "", "", "", "", dollars(perHour), dollars(spent)})
	fmt.Fprintln(w, t.Render())
	if so.ListOnly {
		return nil
	}
	if !o.Yes {
		if o.Confirm == nil {
			return fail.Input("nobody is there to confirm that these %d are deleted; add --yes to delete them without a question, or --list to look only", len(found))
		}
		yes, err := o.Confirm(ctx, fmt.Sprintf("Delete these %d?", len(found)))
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(w, "nothing was deleted")
			return nil
		}
	}
	left, err := c.Delete(ctx, found, o.Console.Printf)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("still there: %s; run the sweep again in a few minutes", join(left))
	}
	what := "percore's"
	if so.RunID != "" {
		what = "run " + found[0].RunID
	}
	fmt.Fprintf(w, "deleted %d; nothing of %s is left in %s\n", len(found), what, c.Region)
	return nil
}

// ofRun are the resources of the run of that id, or of the one whose id begins
// so. The beginning of several ids is refused: they are about to be deleted.
func ofRun(found []awsx.Resource, id string) ([]awsx.Resource, error) {
	by := map[string][]awsx.Resource{}
	for _, r := range found {
		if strings.HasPrefix(r.RunID, id) {
			by[r.RunID] = append(by[r.RunID], r)
		}
	}
	if of, ok := by[id]; ok {
		return of, nil
	}
	runs := slices.Sorted(maps.Keys(by))
	switch len(runs) {
	case 0:
		return nil, nil
	case 1:
		return by[runs[0]], nil
	}
	return nil, fail.Input("%q could be %s; write more of the id", id, strings.Join(runs, " or "))
}

func dollars(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}
