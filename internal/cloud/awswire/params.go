package awswire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Params are the parameters of an EC2 action under their flat names:
// Filter.1.Name, InstanceId.2.
type Params map[string]string

// List adds values as NAME.1, NAME.2, and returns the parameters.
func (p Params) List(name string, values ...string) Params {
	for i, v := range values {
		p[fmt.Sprintf("%s.%d", name, i+1)] = v
	}
	return p
}

// Filter adds a filter of which any value may match. All filters must.
func (p Params) Filter(name string, values ...string) Params {
	n := 1
	for p["Filter."+strconv.Itoa(n)+".Name"] != "" {
		n++
	}
	prefix := "Filter." + strconv.Itoa(n)
	p[prefix+".Name"] = name
	return p.List(prefix+".Value", values...)
}

// Tags adds the tags that a resource of that kind is created with.
func (p Params) Tags(kind string, tags map[string]string) Params {
	n := 1
	for p["TagSpecification."+strconv.Itoa(n)+".ResourceType"] != "" {
		n++
	}
	prefix := "TagSpecification." + strconv.Itoa(n)
	p[prefix+".ResourceType"] = kind
	for i, k := range slices.Sorted(maps.Keys(tags)) {
		p[fmt.Sprintf("%s.Tag.%d.Key", prefix, i+1)] = k
		p[fmt.Sprintf("%s.Tag.%d.Value", prefix, i+1)] = tags[k]
	}
	return p
}

// page is an answer that may be continued. Its pointer embeds Next.
type page interface{ next() string }

// Next is embedded in answers that come in pages.
type Next struct {
	NextToken string `xml:"nextToken"`
}

func (n Next) next() string { return n.NextToken }

// maxPages bounds a listing: a service that repeats its token forever must not
// keep the driver forever.
const maxPages = 10000

// Pages calls an EC2 action for every page of its answer. T embeds Next.
func Pages[T page](ctx context.Context, c *Client, action string, params Params, each func(T)) error {
	params = maps.Clone(params)
	if params == nil {
		params = Params{}
	}
	for range maxPages {
		var answer T
		if err := c.EC2(ctx, action, params, &answer); err != nil {
			return err
		}
		each(answer)
		token := answer.next()
		if token == "" {
			return nil
		}
		if token == params["NextToken"] {
			return fmt.Errorf("ec2 %s: the answer names the page %q as its own next one", action, token)
		}
		params["NextToken"] = token
	}
	return fmt.Errorf("ec2 %s: more than %d pages", action, maxPages)
}
