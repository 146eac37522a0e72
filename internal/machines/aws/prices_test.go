package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/prices"
)

// entries are the entries of a price list, in the form in which AWS gives them.
func entries(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/pricelist.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range raw {
		all = append(all, string(r))
	}
	return all
}

// priceList answers GetProducts from the entries, two to a page, by the filters
// that are asked for.
func priceList(t *testing.T) http.HandlerFunc {
	all := entries(t)
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("X-Amz-Target"); got != "AWSPriceListService.GetProducts" {
			t.Errorf("the call is %q", got)
		}
		var in struct {
			ServiceCode, NextToken string
			Filters                []struct{ Field, Type, Value string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var matching []string
		for _, text := range all {
			var e struct {
				ServiceCode string `json:"serviceCode"`
				Product     struct{ Attributes map[string]string }
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Error(err)
			}
			fits := e.ServiceCode == in.ServiceCode
			for _, f := range in.Filters {
				fits = fits && f.Type == "TERM_MATCH" && e.Product.Attributes[f.Field] == f.Value
			}
			if fits {
				matching = append(matching, text)
			}
		}
		from := 0
		if in.NextToken != "" {
			if _, err := fmt.Sscan(in.NextToken, &from); err != nil {
				t.Errorf("page %q: %v", in.NextToken, err)
			}
		}
		out := map[string]any{"FormatVersion": "aws_v1", "PriceList": matching[from:min(from+2, len(matching))]}
		if from+2 < len(matching) {
			out["NextToken"] = fmt.Sprint(from + 2)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}
}

// against makes a client whose services are played by the handlers.
func against(t *testing.T, pricing, ec2 http.HandlerFunc) *Client {
	t.Helper()
	alone(t, "")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for name, h := range map[string]http.HandlerFunc{"PRICING": pricing, "EC2": ec2} {
		if h == nil {
			h = func(w http.ResponseWriter, r *http.Request) {
				t.Errorf("%s was called", name)
				w.WriteHeader(400)
			}
		}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		t.Setenv("AWS_ENDPOINT_URL_"+name, s.URL)
	}
	c, err := Open(t.Context(), Options{Region: "us-east-1", Poll: time.Millisecond, Patience: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLivePrices(t *testing.T) {
	c := against(t, priceList(t), nil)
	table := prices.Table{Date: "2020-01-01", Instances: map[string]prices.Instance{"c6in.2xlarge": {PerHour: map[string]float64{"us-east-1": 0.4536}}}}
	p, err := c.Prices(t.Context(), []string{"c8g.xlarge", "c8gn.xlarge", "c6in.2xlarge", "unheard.large"}, table)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Live || p.Date != "2026-07-20" || p.Source != LiveSource {
		t.Errorf("%+v", p)
	}
	if len(p.PerHour) != 3 || p.PerHour["c8g.xlarge"] != 0.15952 || p.PerHour["c8gn.xlarge"] != 0.237 || p.PerHour["c6in.2xlarge"] != 0.4536 {
		t.Errorf("by the hour %v", p.PerHour)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "no price of c6in.2xlarge in us-east-1; it is from the table of 2020-01-01") {
		t.Errorf("notes %q", p.Notes)
	}
	if p.Disk == nil || *p.Disk != (prices.Disk{GiBMonth: 0.08, IOPSMonth: 0.005, MiBSMonth: 0.04}) || p.Address != 0.005 {
		t.Errorf("disk %+v, address %g", p.Disk, p.Address)
	}
}

func TestPricesDenied(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
		w.WriteHeader(400)
		io.WriteString(w, `{"Message":"no"}`)
	}, nil)
	p, err := c.Prices(t.Context(), []string{"x.large"}, prices.Table{Date: "2020-01-01", Source: "a table", Instances: map[string]prices.Instance{"x.large": {PerHour: map[string]float64{"us-east-1": 2}}}})
	if err != nil || p.Live || p.PerHour["x.large"] != 2 || p.Source != "a table" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "the AWS identity may not (pricing:GetProducts); prices are from the table of 2020-01-01") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPriceTable(t *testing.T) {
	c := against(t, priceList(t), func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `<DescribeInstanceTypesResponse><instanceTypeSet>`+
			`<item><instanceType>c8g.xlarge</instanceType><processorInfo><supportedArchitectures><item>arm64</item></supportedArchitectures></processorInfo><vCpuInfo><defaultVCpus>4</defaultVCpus><defaultCores>4</defaultCores></vCpuInfo><memoryInfo><sizeInMiB>8192</sizeInMiB></memoryInfo></item>`+
			`<item><instanceType>c7i.2xlarge</instanceType><processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures></processorInfo><vCpuInfo><defaultVCpus>8</defaultVCpus><defaultCores>4</defaultCores></vCpuInfo><memoryInfo><sizeInMiB>16384</sizeInMiB></memoryInfo></item>`+
			`<item><instanceType>t4g.large</instanceType><burstablePerformanceSupported>true</burstablePerformanceSupported><processorInfo><supportedArchitectures><item>arm64</item></supportedArchitectures></processorInfo><vCpuInfo><defaultVCpus>2</defaultVCpus><defaultCores>2</defaultCores></vCpuInfo><memoryInfo><sizeInMiB>8192</sizeInMiB></memoryInfo></item>`+
			`</instanceTypeSet></DescribeInstanceTypesResponse>`)
	})
	table, err := c.PriceTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Instances) != 2 || table.Currency != "USD" || table.Date != "2026-07-20" {
		t.Errorf("%+v", table)
	}
	i, price, err := table.Find("c7i.2xlarge", "us-east-1")
	if err != nil || price != 0.357 || i.Cores != 4 || i.VCPUs != 8 || i.Arch != "x86_64" || i.MemoryGiB != 16 {
		t.Errorf("%+v at %g, %v", i, price, err)
	}
}

func TestShippedPricesOfProfiles(t *testing.T) {
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	types := []string{"c8g.xlarge", "c8gn.xlarge", "c7i.2xlarge", "c6in.2xlarge"}
	p := FromTable(table, prices.DefaultRegion, types)
	for _, x := range types {
		if !(p.PerHour[x] > 0) {
			t.Errorf("the shipped table has no price of %s, which a shipped profile uses", x)
		}
	}
	if p.Disk == nil || p.Address != 0.005 || p.Live || p.Date == "" || p.Source == "" {
		t.Errorf("%+v", p)
	}
	// They can be estimated anywhere.
	for _, region := range []string{"eu-central-1", "mars-north-1"} {
		p := FromTable(table, region, types)
		if len(p.PerHour) != len(types) || p.Disk == nil || len(p.Notes) == 0 || !strings.HasSuffix(p.Source, "an estimate, with prices of other regions") {
			t.Errorf("%s: %+v", region, p)
		}
	}
}

// What a table does not have of a region has the price of the dearest one, and
// that is said.
func TestPricesOfAnotherRegion(t *testing.T) {
	disk := func(gib float64) prices.Disk { return prices.Disk{GiBMonth: gib, IOPSMonth: 0.005, MiBSMonth: 0.04} }
	table := prices.Table{Date: "2020-01-01", Source: "a table", Instances: map[string]prices.Instance{
		"a.large": {PerHour: map[string]float64{"us-east-1": 1, "sa-east-1": 3, "eu-west-1": 2}},
		"b.large": {PerHour: map[string]float64{"us-east-1": 1, "eu-central-1": 2, "sa-east-1": 9}},
	}, Disks: map[string]prices.Disk{"us-east-1": disk(0.08), "sa-east-1": disk(0.15)}}
	types := []string{"a.large", "b.large", "c.large"}
	p := FromTable(table, "eu-central-1", types)
	if p.PerHour["a.large"] != 3 || p.PerHour["b.large"] != 2 || len(p.PerHour) != 2 || p.Disk == nil || p.Disk.GiBMonth != 0.15 {
		t.Errorf("%+v", p)
	}
	if got := strings.Join(p.Notes, "\n"); len(p.Notes) != 2 || !strings.Contains(got, "no price of a.large in eu-central-1; that of sa-east-1, the dearest in it, stands in") || !strings.Contains(got, "no price of gp3 volumes in eu-central-1; that of sa-east-1") {
		t.Errorf("notes %q", p.Notes)
	}
	if p := FromTable(table, "us-east-1", types); len(p.Notes) != 0 || p.Source != "a table" || p.PerHour["a.large"] != 1 || p.Disk.GiBMonth != 0.08 {
		t.Errorf("%+v", p)
	}
	// The list has no price of a.large, and the table none of the region.
	c := against(t, priceList(t), nil)
	delete(table.Instances["a.large"].PerHour, "us-east-1")
	p, err := c.Prices(t.Context(), []string{"c8g.xlarge", "a.large"}, table)
	if err != nil || !p.Live || p.PerHour["a.large"] != 3 || len(p.Notes) != 2 || p.Source != LiveSource+estimated {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParseProduct(t *testing.T) {
	var kept []string
	for _, text := range entries(t) {
		p, err := parseProduct(text)
		if err != nil {
			continue
		}
		if name := p.instanceType(); name != "" {
			kept = append(kept, name)
		}
	}
	if want := []string{"c8g.xlarge", "c8gn.xlarge", "c7i.2xlarge", "t4g.large"}; !slices.Equal(kept, want) {
		t.Errorf("plain prices of %v, want %v", kept, want)
	}
	for _, text := range []string{"", "{}", `{"terms":{"OnDemand":{"x":{"priceDimensions":{"y":{"unit":"Hrs","pricePerUnit":{"CNY":"1"}}}}}}}`, `{"terms":{"OnDemand":{"x":{"priceDimensions":{"y":{"unit":"Hrs","pricePerUnit":{"USD":"NaN"}}}}}}}`} {
		if p, err := parseProduct(text); err == nil {
			t.Errorf("%q became %+v", text, p)
		}
	}
}

func TestPricingRegion(t *testing.T) {
	for region, want := range map[string]string{"us-west-2": "us-east-1", "eu-north-1": "eu-central-1", "ap-south-2": "ap-south-1", "cn-north-1": "cn-northwest-1", "sa-east-1": "us-east-1"} {
		if got := pricingRegion(region); got != want {
			t.Errorf("%s asks in %s", region, got)
		}
	}
}

func FuzzParseProduct(f *testing.F) {
	for _, text := range entries(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProduct(text)
		if err != nil {
			return
		}
		if !(p.USD > 0) || math.IsInf(p.USD, 0) {
			t.Errorf("the price is %g", p.USD)
		}
		var d prices.Disk
		p.disk(&d)
		_, _ = p.instanceType(), p.address()
	})
}
