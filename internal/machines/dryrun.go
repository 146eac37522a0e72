package machines

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
	"github.com/percore/percore/internal/run"
)

// pricedRegion is the region whose prices stand for one that nobody has named.
const pricedRegion = "us-east-1"

// DryRun writes every window of a new run, how long it takes and what it costs
// by the price table, and makes nothing. It asks nobody, so it needs no
// credentials: what can be had, and live prices, are asked for before machines
// are made.
func DryRun(o Options, w io.Writer) error {
	if err := checkCost(o); err != nil {
		return err
	}
	p, err := plan.FindProfile(o.Root, o.Profile)
	if err != nil {
		return err
	}
	if p.Cloud == nil {
		_, err := lay(o.Options) // says which profiles have machines
		return err
	}
	table, err := o.table()
	if err != nil {
		return err
	}
	machines := map[plan.Role]plan.Machine{plan.App: vast, plan.DB: vast, plan.Load: vast}
	for role, name := range p.Cloud.Instances {
		if t, ok := table.Instances[name]; ok {
			machines[role] = plan.Machine{CPUs: t.Cores, MemoryBytes: int64(t.MemoryGiB * (1 << 30))}
		}
	}
	prepared, err := run.PrepareFor(o.Options, machines)
	if err != nil {
		return err
	}
	for _, line := range prepared.Describe(plan.Undone) {
		fmt.Fprintln(w, line)
	}
	length := prepared.List.Time(plan.DefaultOverhead(), plan.Undone)
	if p.Cloud.Provider != plan.ProviderAWS {
		return nil
	}
	length += aroundTime
	region := cmp.Or(o.Region, p.Cloud.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" {
		region = pricedRegion
		fmt.Fprintf(w, "note: no region is named, so the prices are those of %s\n", region)
	}
	request := aws.RequestOf(p)
	prices := aws.FromTable(table, region, request.Types())
	for _, note := range prices.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	if types := prices.UnpricedTypes(request); len(types) > 0 {
		fmt.Fprintf(w, "with making and preparing the machines about %s; there is no price of %s, so the cost is unknown\n", plaintext.Duration(length), strings.Join(types, ", "))
		return nil
	}
	estimate := prices.Estimate(request, length)
	for _, item := range estimate.Items {
		fmt.Fprintf(w, "  %-40s $%.4f an hour\n", item.What, item.PerHour)
	}
	for _, what := range estimate.Unpriced {
		fmt.Fprintf(w, "note: there is no price of %s, so it is not in the sum\n", what)
	}
	life := p.Cloud.Life()
	fmt.Fprintf(w, "in all $%.2f an hour in %s (%s, %s, before tax); about %s with making and preparing the machines, so about $%.2f\n",
		estimate.PerHour, region, prices.Source, prices.Date, plaintext.Duration(length), estimate.Total)
	switch {
	case length > life:
		fmt.Fprintf(w, "note: the machines shut themselves down after %s, which is too soon: the run would be refused\n", life.Round(time.Minute))
	case o.MaxCostUSD > 0 && estimate.Total > o.MaxCostUSD:
		fmt.Fprintf(w, "note: it may cost %s, so the run would be refused\n", usd(o.MaxCostUSD))
	}
	return nil
}

// table is the price table that the user gave, or the one that ships with
// percore.
func (o Options) table() (prices.Table, error) {
	if o.Prices != "" {
		return prices.Read(o.Prices)
	}
	return prices.Shipped()
}

// DryResume writes the windows of a run that are done and those that are left,
// and changes nothing.
func DryResume(o Options, name string, w io.Writer) error {
	d, err := Peek(o, name)
	if err != nil {
		return err
	}
	p, done, err := d.left()
	if err != nil {
		return err
	}
	for _, line := range p.Describe(done) {
		fmt.Fprintln(w, line)
	}
	return nil
}
