package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
)

func newCompareCmd(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "compare A B [C …]",
		Short: "put runs and the published figures side by side, and say what travels",
		Long: "Compare puts sets of figures side by side, cell by cell, and takes the CPU per request\n" +
			"of each host apart into one factor of the hardware and what does not travel.\n" +
			"Each of A, B, C is published, the id of a run or the beginning of one, latest, the path\n" +
			"of a results folder, a raw folder of the published study, or figures in the form of\n" +
			"results/published: a file or a folder of files. All are compared with A.",
		Example: "  percore compare published latest\n  percore compare published 20261001 results/cloud-c8g --format md",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := sheet.CheckFormat(format); err != nil {
				return err
			}
			var sets []*figures.Set
			for _, arg := range args {
				s, err := a.figures(arg)
				if err != nil {
					return err
				}
				sets = append(sets, s)
			}
			r, err := portability.Compare(sets...)
			if err != nil {
				return err
			}
			return sheet.Write(a.stdout, format, r.Document(), r)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, md, csv or json")
	a.noVerifyFlag(cmd)
	return cmd
}

// figures reads the figures of what a person named: published, a run, a raw
// folder of the published study, or files in the form of the published figures.
// The raw files of a run are checked, unless --no-verify says otherwise.
func (a *app) figures(arg string) (*figures.Set, error) {
	if arg == published.Name {
		return published.Set()
	}
	if published.Is(arg) && !store.IsRun(arg) && study.Locate(arg) == "" {
		return published.Open(arg)
	}
	dir, studys, err := a.locate(arg)
	if err != nil {
		return nil, err
	}
	if studys {
		s, err := study.Read(dir)
		if err != nil {
			return nil, err
		}
		return figures.FromStudy(s), nil
	}
	st, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := a.check(st); err != nil {
		return nil, err
	}
	set := figures.FromStore(st)
	// A copy of a run has the run's id; its folder tells the two apart.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if real, err = filepath.Abs(real); err == nil {
			set.Name = filepath.Base(real)
		}
	}
	return set, nil
}

func newClaimsCmd(a *app) *cobra.Command {
	var format, file string
	var all bool
	cmd := &cobra.Command{
		Use:   "claims RUN",
		Short: "give a verdict on each published claim",
		Long: "Claims judges every claim of the published studies over the figures of a run:\n" +
			"reproduced, not reproduced or inconclusive, with the measured value, its interval, the\n" +
			"published value and the reason. RUN is as for compare. The claims are data:\n" +
			"results/published/claims.yaml, or with --claims a file of your own (docs/claims.md).",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := sheet.CheckFormat(format); err != nil {
				return err
			}
			list, err := claims.Published()
			if file != "" {
				list, err = claims.Read(file)
			}
			if err != nil {
				return err
			}
			base, err := published.Set()
			if err != nil {
				return err
			}
			set, err := a.figures(args[0])
			if err != nil {
				return err
			}
			r := claims.Of(list, set, base)
			return sheet.Write(a.stdout, format, r.Document(all || format == "csv"), r)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, md, csv or json")
	cmd.Flags().StringVar(&file, "claims", "", "read the claims from this `FILE`")
	cmd.Flags().BoolVar(&all, "all", false, "list the claims about what was not measured too")
	a.noVerifyFlag(cmd)
	return cmd
}
