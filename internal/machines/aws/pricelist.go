package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/prices"
)

// product is one entry of the AWS price list with its on-demand price.
type product struct {
	Family     string
	Attributes map[string]string
	Unit       string  // Hrs, GB-Mo, IOPS-Mo, GiBps-mo
	USD        float64 // per unit
	Published  string  // date, as in 2026-07-20
}

// parseProduct reads one entry of GetProducts' PriceList. An entry without an
// on-demand price in dollars is an error.
func parseProduct(text string) (product, error) {
	var in struct {
		Product struct {
			Family     string            `json:"productFamily"`
			Attributes map[string]string `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				Dimensions map[string]struct {
					Unit    string            `json:"unit"`
					PerUnit map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
		Published string `json:"publicationDate"`
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return product{}, fmt.Errorf("an entry of the price list: %w", err)
	}
	p := product{Family: in.Product.Family, Attributes: in.Product.Attributes}
	p.Published, _, _ = strings.Cut(in.Published, "T")
	// Of several tiers the dearest counts: a cheaper or free one before it is
	// part of another price.
	for _, term := range slices.Sorted(maps.Keys(in.Terms.OnDemand)) {
		dimensions := in.Terms.OnDemand[term].Dimensions
		for _, key := range slices.Sorted(maps.Keys(dimensions)) {
			d := dimensions[key]
			usd, ok := d.PerUnit["USD"]
			if !ok {
				continue
			}
			v, err := strconv.ParseFloat(usd, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				return product{}, fmt.Errorf("an entry of the price list has the price %q", usd)
			}
			if v > p.USD {
				p.USD, p.Unit = v, d.Unit
			}
		}
	}
	if !(p.USD > 0) {
		return product{}, errors.New("an entry of the price list has no on-demand price in USD")
	}
	return p, nil
}

// instanceType is the type that the product is the plain hourly price of,
// empty for any other product: other systems, reservations, other units.
func (p product) instanceType() string {
	a := p.Attributes
	is := func(key, want string) bool { return a[key] == "" || a[key] == want }
	if !strings.HasPrefix(p.Family, "Compute Instance") || p.Unit != "Hrs" || !is("operatingSystem", "Linux") || !is("tenancy", "Shared") ||
		!is("capacitystatus", "Used") || !is("preInstalledSw", "NA") || !is("operation", "RunInstances") || !is("marketoption", "OnDemand") {
		return ""
	}
	return a["instanceType"]
}

// disk adds what the product says of gp3 volumes to a price.
func (p product) disk(d *prices.Disk) {
	if p.Attributes["volumeApiName"] != "gp3" {
		return
	}
	switch strings.ToLower(p.Unit) {
	case "gb-mo":
		d.GiBMonth = p.USD
	case "iops-mo":
		d.IOPSMonth = p.USD
	case "gibps-mo":
		d.MiBSMonth = p.USD / 1024
	case "mibps-mo":
		d.MiBSMonth = p.USD
	}
}

// address is the price of a public IPv4 address in use, 0 for any other product.
func (p product) address() float64 {
	if p.Unit == "Hrs" && strings.HasSuffix(p.Attributes["usagetype"], "PublicIPv4:InUseAddress") {
		return p.USD
	}
	return 0
}
