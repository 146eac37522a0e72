package prices

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/internal/testkit/said"
)

func TestBadPrices(t *testing.T) {
	data, err := os.ReadFile("../../results/published/prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	for name, change := range map[string][2]string{
		"unknown key":    {"currency: USD", "currency: USD\ncolour: red"},
		"no date":        {"date: 2026-01-19", "date: \"\""},
		"text price":     {"us-east-1: 0.0725", "us-east-1: cheap"},
		"negative price": {"us-east-1: 0.0725", "us-east-1: -1"},
		"zero price":     {"us-east-1: 0.0725", "us-east-1: 0"},
		"infinite price": {"us-east-1: 0.0725", "us-east-1: .inf"},
		"no cores":       {"cores: 2", "cores: 0"},
		"too many cores": {"cores: 2", "cores: 3"},
		"no memory":      {"memory_gib: 4", "memory_gib: 0"},
		"type twice":     {"  c7g.xlarge:", "  c7g.large:"},
		"not YAML":       {"instances:", "instances: ["},
		"empty":          {good, ""},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Errorf("%s: nothing was changed", name)
		}
		if _, err := Parse("p.yaml", []byte(text)); !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") || !strings.HasPrefix(said.Err(err), "p.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read("no/such.yaml"); !fail.IsInput(err) {
		t.Errorf("%v", err)
	}
}

// Within a family and a region the price goes with the size.
func TestShippedAreEven(t *testing.T) {
	p, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for id, i := range p.Instances {
		family, _, _ := strings.Cut(id, ".")
		base := p.Instances[family+".xlarge"]
		for region, price := range i.PerHour {
			want := base.PerHour[region] * float64(i.VCPUs) / float64(base.VCPUs)
			if math.Abs(price/want-1) > 0.005 {
				t.Errorf("%s in %s costs %v, %v by its size", id, region, price, want)
			}
		}
	}
	if len(p.Instances) < 15 || len(p.Regions()) < 4 {
		t.Errorf("%d types, %v", len(p.Instances), p.Regions())
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("../../results/published/prices.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		for id, i := range p.Instances {
			for region := range i.PerHour {
				if _, _, err := p.Find(id, region); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestDiskPrices(t *testing.T) {
	p, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	d, ok := p.Disks[DefaultRegion]
	if !ok || p.AddressPerHour <= 0 {
		t.Fatalf("disks %v, address %g", p.Disks, p.AddressPerHour)
	}
	// 40 GiB, 3,000 IOPS and 125 MiB/s more than what is included.
	if got, want := d.PerHour(40, 6000, 250), (40*d.GiBMonth+3000*d.IOPSMonth+125*d.MiBSMonth)/HoursPerMonth; math.Abs(got-want) > 1e-12 {
		t.Errorf("a disk costs %g an hour, want %g", got, want)
	}
	if got, want := d.PerHour(30, 0, 0), 30*d.GiBMonth/HoursPerMonth; math.Abs(got-want) > 1e-12 {
		t.Errorf("a disk with what is included costs %g an hour, want %g", got, want)
	}
	const head = "currency: USD\ndate: x\nsource: x\ninstances: {a: {arch: arm64, vcpus: 1, cores: 1, memory_gib: 1, per_hour: {r: 1}}}\n"
	for _, text := range []string{"disks: {r: {gib_month: 0, iops_month: 1, mib_s_month: 1}}", "disks: {r: {gib_month: 1, iops_month: .inf, mib_s_month: 1}}", "address_per_hour: -1", "address_per_hour: .nan"} {
		if _, err := Parse("x", []byte(head+text)); err == nil || !fail.IsInput(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Only a regular file of bounded size is read: a FIFO would wait for ever.
func TestPricesOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# nothing\n"), yamlfile.MaxSize/10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "not a regular file", os.DevNull: "not a regular file", dir: "a folder", large: "too large", large + "/x": "reading prices"} {
		if _, err := Read(path); !fail.IsInput(err) || !strings.Contains(said.Err(err), want) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What is wrong with a table is said without the program's own types.
func TestPricesInPlainWords(t *testing.T) {
	const head = "currency: USD\ndate: x\nsource: x\n"
	for text, want := range map[string]string{
		"instances: {a: {arch: arm64, vcpus: 1, cores: 1, memory_gib: 1, per_hour: {r: cheap}}}":          `p:4: instances.a.per_hour.r is "cheap"; write a number`,
		"instances: {a: {arch: arm64, vcpus: 1, cores: x, memory_gib: 1, per_hour: {r: 1}}}":              `p:4: instances.a.cores is "x"; write a whole number`,
		"instances: {a: {arch: arm64, vcpus: 1, cores: 1, memory_gib: 1, per_hour: {r: 1}}}\n---\na: b\n": `p:6: a second document begins`,
	} {
		if _, err := Parse("p", []byte(head+text)); !fail.IsInput(err) || !strings.HasPrefix(said.Err(err), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
