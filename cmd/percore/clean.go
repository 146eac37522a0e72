package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/lab/engine"
)

func newCleanCmd(a *app) *cobra.Command {
	var o lab.CleanOptions
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove percore's containers, networks and volumes from the engine, and nothing else",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			e, err := engine.Connect(ctx, engine.Options{})
			if err != nil {
				return err
			}
			defer e.Close()
			removed, err := lab.Clean(ctx, e, o)
			for _, t := range removed {
				fmt.Fprintf(a.stdout, "removed %s\n", t)
			}
			if err == nil && len(removed) == 0 {
				fmt.Fprintf(a.stdout, "nothing of percore's on the engine at %s\n", e.Host())
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Images, "images", false, "remove its images as well; the next run builds them again")
	cmd.Flags().BoolVar(&o.Force, "force", false, "remove also what belongs to a run that is being measured")
	return cmd
}
