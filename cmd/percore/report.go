package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/analysis"
	"github.com/percore/percore/internal/fail"
	"github.com/percore/percore/internal/report"
	"github.com/percore/percore/internal/store"
	"github.com/percore/percore/internal/study"
)

func newReportCmd(a *app) *cobra.Command {
	var (
		o      report.Options
		out    string
		verify bool
		force  bool
	)
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "print the tables of a run",
		Long: "Report prints the tables of a run: fixed rate, ceiling, token share, probe range\n" +
			"and failed gates. RUN is the id of a run or the beginning of one, latest, or the\n" +
			"path of a results folder. The raw folder of the published study (meta.json and\n" +
			"raw/) is read as well.\n\n" +
			"CSV is one table: the columns and the rounding of the study's summary.csv, or\n" +
			"with --table another table in full precision. docs/report-json.md describes JSON.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			in, st, err := a.open(args[0])
			if err != nil {
				return err
			}
			if verify {
				if err := a.verify(in, st); err != nil {
					return err
				}
			}
			r := analysis.Of(in)
			if o.Format == "csv" {
				a.warn(r)
			}
			if out == "" {
				o.Width = a.width()
				return report.Write(a.stdout, r, o)
			}
			var text bytes.Buffer
			if err := report.Write(&text, r, o); err != nil {
				return err
			}
			return writeOut(out, text.Bytes(), force)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Format, "format", "text", strings.Join(report.Formats, ", "))
	flags.StringVar(&o.Table, "table", "", "with --format csv, the table: "+strings.Join(report.CSVTables, ", "))
	flags.StringVar(&out, "out", "", "write to this `FILE` instead of the terminal")
	flags.BoolVar(&force, "force", false, "with --out, replace a file that exists")
	flags.BoolVar(&verify, "verify", false, "first check every raw file's digest and derive every figure from the raw files anew")
	return cmd
}

// open reads what a person named: a run, or the study's raw folder. The store
// is nil for the latter.
func (a *app) open(arg string) (analysis.Input, *store.Store, error) {
	// A path needs no project around it.
	if err := a.findRoot(); err != nil && (a.results == "" || arg == "") {
		if _, statErr := os.Stat(arg); statErr != nil {
			return analysis.Input{}, nil, err
		}
	}
	dir, err := store.Find(a.results, arg)
	if err != nil {
		return analysis.Input{}, nil, err
	}
	if found := study.Locate(dir); found != "" {
		s, err := study.Read(found)
		if err != nil {
			return analysis.Input{}, nil, err
		}
		return analysis.FromStudy(s), nil, nil
	}
	st, err := store.Open(dir)
	if err != nil {
		return analysis.Input{}, nil, err
	}
	return analysis.FromStore(st), st, nil
}

// printReport prints the tables of a results folder to the terminal and leaves
// them in the folder as report.md, report.csv and report.json.
func (a *app) printReport(dir string) error {
	st, err := store.Open(dir)
	if err != nil {
		return err
	}
	r := analysis.Of(analysis.FromStore(st))
	return errors.Join(report.Text(a.stdout, r, a.width()), report.Save(dir, r))
}

// verify holds the log of a run against its raw files.
func (a *app) verify(in analysis.Input, st *store.Store) error {
	if st == nil {
		fmt.Fprintln(a.stderr, "verified: these figures are derived from the raw files each time")
		return nil
	}
	digests, err := st.Verify()
	if err != nil {
		return err
	}
	figures, err := st.Rederive()
	if err != nil {
		return err
	}
	bad := 0
	for _, p := range append(digests, figures...) {
		fmt.Fprintf(a.stderr, "%s\n", p)
		if p.Fatal {
			bad++
		}
	}
	if bad > 0 {
		return fail.Input("%s: %d raw file(s) do not agree with the log of the run; copy the folder again from where it was measured", st.Dir(), bad)
	}
	fmt.Fprintf(a.stderr, "verified: %d attempts, every digest and every figure agrees with the raw files\n", len(in.Windows))
	return nil
}

// warn says what a bare CSV cannot: why figures may not be compared and which
// cells are incomplete.
func (a *app) warn(r analysis.Report) {
	for _, c := range r.Caveats {
		fmt.Fprintf(a.stderr, "note: %s\n", c)
	}
	say := func(c analysis.Cell) {
		for _, n := range c.Notes {
			fmt.Fprintf(a.stderr, "note: %s %s %s: %s\n", c.Phase, c.Candidate, c.Scenario, n)
		}
	}
	for _, row := range r.Rate {
		say(row.Cell)
	}
	for _, row := range r.Connections {
		say(row.Cell)
	}
}

// writeOut writes a report to a file that must be new, unless force is set, and
// that appears whole or not at all.
func writeOut(name string, data []byte, force bool) error {
	if !force {
		if _, err := os.Lstat(name); err == nil {
			return fail.Input("%s exists already; choose another file or add --force", name)
		}
	}
	return report.Replace(name, data)
}
