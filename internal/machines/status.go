package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
)

// Summary is one cloud run as status shows it.
type Summary struct {
	State
	Stage    string            `json:"stage"`     // the next one, or "destroyed"
	USDSpent float64           `json:"usd_spent"` // until now
	Machines []fleet.Machine   `json:"machines,omitempty"`
	AWS      map[string]string `json:"aws,omitempty"` // instance id -> its state, by AWS
	Problem  string            `json:"problem,omitempty"`
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
	states, damaged := List(o.Results)
	if id != "" {
		run, err := Choose(o.Results, id)
		if err != nil {
			return err
		}
		s, err := readState(run)
		if err != nil {
			return err
		}
		o.Results, states, damaged = filepath.Dir(run), []State{s}, nil
	}
	all := []Summary{}
	for _, s := range states {
		sum := Summary{State: s, Stage: s.stage(), USDSpent: s.Spent(time.Now())}
		if s.Pending() {
			err := sum.look(ctx, o)
			var account *accountError
			if id != "" && errors.As(err, &account) {
				return account
			}
			if err != nil {
				sum.Problem = oneLine(err)
			}
		}
		all = append(all, sum)
	}
	for _, err := range damaged {
		o.Console.Printf("note: %v", err)
	}
	if asJSON {
		text, err := marshal(all)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if len(all) == 0 && len(damaged) == 0 {
		_, err := fmt.Fprintf(w, "there are no cloud runs in %s; make cloud-run or %s makes one\n", o.Results, o.Words.Say(fail.Call("cloud run")))
		return err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"run", "on", "next stage", "machines", "$ an hour", "$ so far", "expires"})
	for _, s := range all {
		expires := "never"
		if s.Expires != nil {
			expires = s.Expires.UTC().Format("2006-01-02 15:04 UTC")
			switch {
			case s.Expired():
				expires += ", expired"
			case s.Live():
				expires += ", in " + plaintext.Duration(time.Until(*s.Expires))
			}
		}
		t.AppendRow(table.Row{s.ID, strings.TrimSpace(string(s.Provider) + " " + s.Region), s.Stage, s.count(), fmt.Sprintf("%.2f", s.USDPerHour), fmt.Sprintf("%.2f", s.USDSpent), expires})
	}
	if len(all) > 0 {
		fmt.Fprintln(w, t.Render())
	}
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
		for _, instance := range slices.Sorted(maps.Keys(s.AWS)) {
			if !slices.ContainsFunc(s.Machines, func(m fleet.Machine) bool { return m.InstanceID == instance }) {
				fmt.Fprintf(w, "%-6s %s %s\n", "?", instance, s.AWS[instance])
			}
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
	return fmt.Sprintf("%d, %d running", max(len(s.Machines), len(s.AWS)), running)
}

// look finds out which machines a run has and asks AWS what has become of them.
// Before the machines are complete there is no list of them, and there may be
// some.
func (s *Summary) look(ctx context.Context, o Options) error {
	text, err := os.ReadFile(filepath.Join(o.Results, s.ID, Dir, labFile))
	if err == nil {
		var l fleet.Lab
		l, err = fleet.Parse(text)
		s.Machines = l.Machines
	} else if s.Up == nil && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.Provider != plan.ProviderAWS {
		return err
	}
	c, openErr := aws.Open(ctx, aws.Options{Region: s.Region, Profile: cmp.Or(o.AWSProfile, s.AWSProfile)})
	if openErr == nil {
		openErr = s.belongsTo(ctx, c)
	}
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	var askErr error
	s.AWS, askErr = c.Running(ctx, s.ID)
	return errors.Join(err, askErr)
}

// SweepOptions narrow a sweep.
type SweepOptions struct {
	RunID    string // only what belongs to this run, or the beginning of its id; empty for all
	ListOnly bool   // delete nothing
}

// Sweep lists everything of percore's in a region, with age and cost, and
// deletes it once the user has said yes.
func Sweep(ctx context.Context, o Options, so SweepOptions, w io.Writer) error {
	ao := aws.Options{Region: o.Region, Profile: o.AWSProfile, Say: o.Console.Printf}
	if o.Prices != "" {
		table, err := prices.Read(o.Prices)
		if err != nil {
			return err
		}
		ao.Prices = &table
	}
	run := known(o.Results, so.RunID)
	ao.Region, ao.Profile = cmp.Or(ao.Region, run.Region), cmp.Or(ao.Profile, run.AWSProfile)
	c, err := aws.Open(ctx, ao)
	if err != nil {
		return err
	}
	if err := run.belongsTo(ctx, c); err != nil {
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
			fmt.Fprintf(w, "nothing of run %s in %s; %d other thing(s) of percore's are there, which %s lists\n", so.RunID, c.Region, others, o.Words.Say(fail.Call("cloud sweep", fail.Setting("region").To(c.Region), fail.Setting("list"))))
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
			age = plaintext.Duration(time.Since(r.Created))
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
			return fail.Input("there is no terminal to confirm the deletion of these %d", len(found)).Try("add %s to delete them without a question, or %s to look only", fail.Setting("yes"), fail.Setting("list"))
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
	gone := map[string]bool{}
	for _, r := range found {
		gone[r.RunID] = true
	}
	for _, l := range left {
		delete(gone, l.RunID)
	}
	if err := settle(ctx, o, c, gone); err != nil {
		return err
	}
	if len(left) > 0 {
		return fail.Work("still there: %s", join(left)).Try("run the sweep again in a few minutes")
	}
	what := "percore's"
	if so.RunID != "" {
		what = "run " + found[0].RunID
	}
	fmt.Fprintf(w, "deleted %d; nothing of %s is left in %s\n", len(found), what, c.Region)
	return nil
}

// known is the state of the run of that id or beginning, empty when the results
// folder has none.
func known(results, id string) State {
	if id == "" {
		return State{}
	}
	run, err := Choose(results, id)
	if err != nil {
		return State{}
	}
	s, err := readState(run)
	if err != nil {
		return State{}
	}
	return s
}

// settle notes in the folders of runs that nothing is left of them. A folder that
// another percore works on is left to it.
func settle(ctx context.Context, o Options, c *aws.Client, gone map[string]bool) error {
	states, _ := List(o.Results)
	for _, s := range states {
		if !gone[s.ID] || !s.Pending() || s.Region != c.Region {
			continue
		}
		var account *accountError
		if err := s.belongsTo(ctx, c); errors.As(err, &account) {
			continue // a run of the same id elsewhere
		} else if err != nil {
			return err
		}
		if err := noteDestroyed(o, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// noteDestroyed notes that the machines of a run are gone.
func noteDestroyed(o Options, id string) error {
	d, err := Peek(o, id)
	if err != nil {
		return err
	}
	if err := d.f.take(); err != nil {
		o.Console.Printf("note: %v; %s notes then that its machines are gone", err, fail.Call("cloud down", id))
		return nil
	}
	defer d.Close()
	if d.f.state, err = readState(d.f.run); err != nil || !d.f.state.Pending() {
		return err
	}
	if err := d.done(&d.f.state.Destroyed); err != nil {
		return err
	}
	o.Console.Printf("run %s is noted as destroyed; it cost about $%.2f", id, d.f.state.Spent(time.Now()))
	return d.noteCost()
}

// ofRun are the resources of the run of that id, or of the one whose id begins
// so. The beginning of several ids is refused: they are about to be deleted.
func ofRun(found []aws.Resource, id string) ([]aws.Resource, error) {
	by := map[string][]aws.Resource{}
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
	return nil, fail.Input("%q could be %s", id, strings.Join(runs, " or ")).Try("type more of the id")
}

func dollars(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}
