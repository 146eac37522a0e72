package main

import (
	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/report"
)

func newShowCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "show a run: what it is, how far it has come, every window with its gates",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == published.Name {
				return fail.Input("the published figures are no run").Try("percore report published lists them")
			}
			src, err := a.open(args[0])
			if err != nil {
				return err
			}
			damaged, err := a.damaged(src.store)
			if err != nil {
				return err
			}
			src.Windows = figures.Without(src.Windows, damaged)
			return report.Show(a.stdout, src.Measured, figures.TablesOf(src.Measured), damaged, a.width())
		},
	}
	a.noVerifyFlag(cmd)
	return cmd
}
