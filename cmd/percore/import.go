package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/evidence/importer"
)

func newImportCmd(a *app) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "import DIR",
		Short: "make a results folder out of a raw folder of the published study",
		Long: "Import copies the raw files of a campaign measured by the published study's own scripts\n" +
			"(meta.json and raw/) byte for byte into a results folder of its own, so that it can stand\n" +
			"wherever a run can: percore compare published study-2026-09-16 latest.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.results == "" {
				if err := a.findRoot(); err != nil {
					return err
				}
			}
			s, err := importer.Import(args[0], a.results, id)
			if err != nil {
				return err
			}
			for _, n := range s.Notes {
				fmt.Fprintf(a.stderr, "note: %s\n", n)
			}
			fmt.Fprintf(a.stdout, "imported %d windows and %d probe reading(s), %d files, as %s: %s\n", s.Windows, s.Probes, s.Files, s.ID, s.Dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the new run (default: study- and the campaign's stamp)")
	return cmd
}
