package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/report"
)

func newLsCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "list the runs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.findRoot(); err != nil && a.results == "" {
				return err
			}
			runs, err := store.List(a.results)
			if err != nil {
				return err
			}
			if asJSON {
				if runs == nil {
					runs = []store.Summary{}
				}
				enc := json.NewEncoder(a.stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(runs)
			}
			if len(runs) == 0 {
				_, err := fmt.Fprintf(a.stdout, "there are no runs in %s yet; make local-run or percore run makes one\n", a.results)
				return err
			}
			return report.List(a.stdout, runs, a.width())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
