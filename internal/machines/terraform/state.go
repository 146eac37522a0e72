package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// addresses reads the addresses of the managed resources out of a state, as
// `state pull` prints it, sorted. This needs no provider, so that what a run
// still holds can be told when nothing can be installed. An empty text is a
// state with nothing in it.
func addresses(text []byte) ([]string, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var state struct {
		Version   int `json:"version"`
		Resources []struct {
			Module    string `json:"module"`
			Mode      string `json:"mode"`
			Type      string `json:"type"`
			Name      string `json:"name"`
			Instances []struct {
				IndexKey any `json:"index_key"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("the state: %w", err)
	}
	if state.Version != 4 {
		return nil, fmt.Errorf("the state has version %d, and percore reads version 4", state.Version)
	}
	var all []string
	for _, r := range state.Resources {
		if r.Mode != "managed" {
			continue
		}
		address := r.Type + "." + r.Name
		if r.Module != "" {
			address = r.Module + "." + address
		}
		for _, i := range r.Instances {
			switch k := i.IndexKey.(type) {
			case nil:
				all = append(all, address)
			case string:
				all = append(all, address+"["+strconv.Quote(k)+"]")
			case float64:
				all = append(all, address+"["+strconv.FormatFloat(k, 'f', -1, 64)+"]")
			default:
				return nil, fmt.Errorf("the state has %s with the key %v", address, k)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
