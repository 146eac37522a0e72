// Package prices is what machines cost, as a table that a person can write:
// instance types, disks and addresses by region.
package prices

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/results/published"
)

// Table is a table of instance types with what they cost by the hour.
type Table struct {
	Currency  string              `yaml:"currency" json:"currency"`
	Date      string              `yaml:"date" json:"date"`
	Source    string              `yaml:"source" json:"source"`
	Instances map[string]Instance `yaml:"instances" json:"instances"`
	Disks     map[string]Disk     `yaml:"disks,omitempty" json:"disks,omitempty"` // region -> price
	// AddressPerHour is what a public IPv4 address costs; 0 where it is not known.
	AddressPerHour float64 `yaml:"address_per_hour,omitempty" json:"address_per_hour,omitempty"`
}

// Disk is what a gp3 volume costs by the month.
type Disk struct {
	GiBMonth  float64 `yaml:"gib_month" json:"gib_month"`
	IOPSMonth float64 `yaml:"iops_month" json:"iops_month"`   // each above IOPSIncluded
	MiBSMonth float64 `yaml:"mib_s_month" json:"mib_s_month"` // each MiB/s above MiBSIncluded
}

// What a gp3 volume has without a charge of its own.
const (
	IOPSIncluded = 3000
	MiBSIncluded = 125
)

// PerHour is what a volume of that size, IOPS and throughput costs by the hour.
func (d Disk) PerHour(gib, iops, mibS int) float64 {
	return (float64(gib)*d.GiBMonth + float64(max(0, iops-IOPSIncluded))*d.IOPSMonth + float64(max(0, mibS-MiBSIncluded))*d.MiBSMonth) / HoursPerMonth
}

// Instance is one type of machine.
type Instance struct {
	Arch      string             `yaml:"arch" json:"arch"`
	VCPUs     int                `yaml:"vcpus" json:"vcpus"`
	Cores     int                `yaml:"cores" json:"cores"` // with one thread per core
	MemoryGiB float64            `yaml:"memory_gib" json:"memory_gib"`
	PerHour   map[string]float64 `yaml:"per_hour" json:"per_hour"` // region -> price
}

// DefaultRegion is where prices are taken from when no region is named.
const DefaultRegion = "us-east-1"

// HoursPerMonth is the month of cloud price lists: 365 days over 12.
const HoursPerMonth = 730

var pricesFile = yamlfile.Kind{What: "prices", Like: "results/published/" + published.PricesFile}

// Shipped returns the price table that is part of the program.
func Shipped() (Table, error) {
	data, err := published.Files.ReadFile(published.PricesFile)
	if err != nil {
		return Table{}, fmt.Errorf("reading the shipped prices: %w", err)
	}
	return Parse("results/published/"+published.PricesFile, data)
}

// Read reads a price table from a file.
func Read(path string) (Table, error) {
	data, err := infile.Read(path, yamlfile.MaxSize, pricesFile.What, pricesFile.Like)
	if err != nil {
		return Table{}, err
	}
	return Parse(path, data)
}

// Parse reads a price table. The name stands for the data in errors.
func Parse(name string, data []byte) (Table, error) {
	var p Table
	if err := pricesFile.Decode(name, data, &p); err != nil {
		return Table{}, err
	}
	if err := p.check(); err != nil {
		return p, pricesFile.Place(name, data, err)
	}
	return p, nil
}

// check refuses prices that cannot be right.
func (p Table) check() error {
	bad := func(key, format string, args ...any) error {
		return fail.Input(format, args...).On("%s", key).Try("write it like %s", pricesFile.Like)
	}
	switch {
	case len(p.Instances) == 0:
		return bad("instances", "there are no instances in it")
	case strings.TrimSpace(p.Currency) == "" || strings.TrimSpace(p.Date) == "" || strings.TrimSpace(p.Source) == "":
		return bad("currency", "currency, date and source must be written, so that a reader can judge the prices")
	}
	for _, id := range slices.Sorted(maps.Keys(p.Instances)) {
		i := p.Instances[id]
		switch {
		case id == "" || strings.ContainsAny(id, " \t\n"):
			return bad("instances."+id, "%q is no instance type", id)
		case i.Cores < 1 || i.Cores > 4096:
			return bad("instances."+id+".cores", "%s: cores must be a number from 1", id)
		case i.VCPUs < i.Cores:
			return bad("instances."+id+".vcpus", "%s: %d vCPUs are fewer than its %d cores", id, i.VCPUs, i.Cores)
		case !(i.MemoryGiB > 0) || math.IsInf(i.MemoryGiB, 0):
			return bad("instances."+id+".memory_gib", "%s: memory_gib must be above zero", id)
		case len(i.PerHour) == 0:
			return bad("instances."+id+".per_hour", "%s: per_hour must hold a price for a region", id)
		}
		for region, price := range i.PerHour {
			if !(price > 0) || math.IsInf(price, 0) || price > 1e6 {
				return bad("instances."+id+".per_hour."+region, "%s: the price %v in %s makes no sense", id, price, region)
			}
		}
	}
	for region, d := range p.Disks {
		for _, v := range []float64{d.GiBMonth, d.IOPSMonth, d.MiBSMonth} {
			if !(v > 0) || v > 1e3 {
				return bad("disks."+region, "disks: the price %v in %s makes no sense; gib_month, iops_month and mib_s_month must be above zero", v, region)
			}
		}
	}
	if v := p.AddressPerHour; !(v >= 0) || v > 1e3 {
		return bad("address_per_hour", "address_per_hour: the price %v makes no sense", v)
	}
	return nil
}

// Regions lists the regions that the table has prices for.
func (p Table) Regions() []string {
	all := map[string]bool{}
	for _, i := range p.Instances {
		for r := range i.PerHour {
			all[r] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Find returns an instance type and its price by the hour in a region.
func (p Table) Find(instance, region string) (Instance, float64, error) {
	i, ok := p.Instances[instance]
	if !ok {
		return i, 0, fail.Input("the price table has no instance type %q", instance).Try("take one of %s, or give %s a table that has it", strings.Join(slices.Sorted(maps.Keys(p.Instances)), ", "), fail.Setting("prices"))
	}
	price, ok := i.PerHour[region]
	if !ok {
		known := slices.Sorted(maps.Keys(i.PerHour))
		return i, 0, fail.Input("the price table has no price of %s in region %q", instance, region).Try("take one of %s, or give %s a table that has it", strings.Join(known, ", "), fail.Setting("prices"))
	}
	return i, price, nil
}
