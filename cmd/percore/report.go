package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/answers/sizing"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/outfile"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/prices"
	"github.com/percore/percore/internal/report"
)

func newReportCmd(a *app) *cobra.Command {
	var (
		o       report.Options
		out     string
		against string
		verify  bool
		force   bool
	)
	short := map[string]*bool{}
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "write the report of a run: a page, text, Markdown, CSV, JSON or benchmark results",
		Long: "Report writes what a run measured: the answers in five lines, a verdict for each\n" +
			"published claim, tables and plots. RUN is the id of a run or the beginning of one, latest,\n" +
			"or the path of a results folder. The raw folder of the published study (meta.json and\n" +
			"raw/) is read as well, and published lists the published figures. The raw files of a run\n" +
			"must be there with the SHA-256 digests in its log.\n\n" +
			"  text   tables for the terminal (the default)\n" +
			"  html   one page that opens offline, with plots (docs/report-html.md)\n" +
			"  md     fits a comment on a pull request\n" +
			"  csv    one table: the columns and the rounding of the study's summary.csv, or with\n" +
			"         --table another one in full precision\n" +
			"  json   everything in full precision (docs/report-json.md)\n" +
			"  bench  the Go benchmark format, for benchstat\n\n" +
			"On a terminal, html is written to report.html in the run's folder unless --out names a file.",
		Example: "  percore report latest\n  percore report latest --html --out /tmp/report.html\n  percore report 20261001 --html --against published\n  percore report latest --bench > new.bench && benchstat old.bench new.bench",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := shorthand(cmd, &o, short); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			if against != "" && o.Format != "html" {
				return fail.Input("only the page compares with another run").Try("add --html or leave out --against, and see percore compare")
			}
			if args[0] == published.Name {
				switch {
				case o.Table != "":
					return fail.Input("the published figures have one table in CSV").Try("leave out --table")
				case verify, a.noVerify:
					return fail.Input("the published figures have no raw files to verify").Try("leave out --verify and --no-verify")
				}
				return a.published(o.Format, out, force)
			}
			if verify && a.noVerify {
				return fail.Input("--verify and --no-verify exclude each other").Try("give one of them")
			}
			src, err := a.open(args[0])
			if err != nil {
				return err
			}
			switch {
			case verify:
				err = a.verify(src.Measured, src.store)
			case src.store != nil && !a.noVerify: // the report itself says what was not checked
				err = a.check(src.store)
			}
			if err != nil {
				return err
			}
			d, err := a.document(src, against)
			if err != nil {
				return err
			}
			if o.Format == "csv" {
				a.warn(d.Report)
			}
			if o.Format == "html" && out == "" && a.width() > 0 {
				if src.store == nil {
					return fail.Input("a page is not for a terminal").Try("give --out FILE")
				}
				out, force = filepath.Join(src.dir, "report.html"), true // derived from the run at any time
			}
			if out == "" {
				o.Width = a.width()
				return report.Write(a.stdout, d, o)
			}
			var text bytes.Buffer
			if err := report.Write(&text, d, o); err != nil {
				return err
			}
			if err := a.writeOut(out, text.Bytes(), force); err != nil {
				return err
			}
			if o.Format == "html" && out != "-" {
				fmt.Fprintf(a.stderr, "written: %s\n", out)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Format, "format", "text", strings.Join(report.Formats, ", "))
	for _, f := range report.Formats[1:] {
		short[f] = flags.Bool(f, false, "the same as --format "+f)
	}
	flags.StringVar(&o.Table, "table", "", "with --csv, the table: "+strings.Join(report.CSVTables, ", "))
	flags.StringVar(&against, "against", "", "with --html, compare with this `RUN`, with published, or with none (default: with published where the figures may stand beside them)")
	flags.StringVar(&out, "out", "", "write to this `FILE` instead of the terminal; - is standard output")
	flags.BoolVar(&force, "force", false, "with --out, replace a file that exists")
	flags.BoolVar(&verify, "verify", false, "first derive every figure from the raw files anew too, and look for what the log lacks")
	a.noVerifyFlag(cmd)
	return cmd
}

// shorthand takes the format from --html and its like. One format can be
// chosen.
func shorthand(cmd *cobra.Command, o *report.Options, short map[string]*bool) error {
	var chosen []string
	if cmd.Flags().Changed("format") {
		chosen = append(chosen, "--format "+o.Format)
	}
	for _, f := range report.Formats[1:] {
		if *short[f] {
			chosen = append(chosen, "--"+f)
			o.Format = f
		}
	}
	if len(chosen) > 1 {
		return fail.Input("a report has one format and %s were asked for", strings.Join(chosen, " and ")).Try("choose one")
	}
	return nil
}

// source is a run as it was named: its windows and where its files are.
type source struct {
	figures.Measured
	store *store.Store // nil for a raw folder of the published study
	dir   string
}

// read returns a raw file of the run.
func (s source) read(path string) ([]byte, error) {
	if s.store != nil {
		return s.store.ReadRaw(path)
	}
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%s is outside of the folder", path)
	}
	return os.ReadFile(filepath.Join(s.dir, path))
}

// ratePlanned is the rate for which a report says what it needs; percore plan
// answers for any other.
const ratePlanned = 10_000

// document makes everything a report holds: the tables, the verdicts, what a
// rate needs, and for the page a comparison.
func (a *app) document(src source, against string) (report.Document, error) {
	d := report.Document{Report: figures.TablesOf(src.Measured), Input: src.Measured, Read: src.read}
	if a.noVerify && src.store != nil {
		d.Report.Caveats = append(d.Report.Caveats, unchecked)
	}
	base, err := published.Set()
	if err != nil {
		return d, err
	}
	list, err := claims.Published()
	if err != nil {
		return d, err
	}
	set := figures.FromRun(src.Run, src.Windows, src.Probes)
	if src.Study {
		set.Kind = figures.KindImported
	}
	d.Verdicts = claims.Evaluate(list, set, base)
	table, err := prices.Shipped()
	if err != nil {
		return d, err
	}
	for _, s := range src.Run.Suite.Scenarios {
		// A scenario for which nothing can be planned is left out of the table.
		if p, err := sizing.Make(set, sizing.Request{Rate: ratePlanned, Mix: map[string]float64{s.ID: 1}}, table); err == nil {
			d.Plans = append(d.Plans, p)
		}
	}
	var other *figures.Set
	switch {
	case against == "none", against == "" && (!d.Report.Header.Comparable || base.Suite != set.Suite):
	case against == "":
		other = base
	default:
		if other, err = a.figures(against); err != nil {
			return d, err
		}
	}
	if other != nil {
		c, err := portability.Compare(other, set)
		if err != nil {
			return d, err
		}
		d.Comparison = &c
	}
	return d, nil
}

// published lists the published figures, which have no windows and so neither
// plots nor benchmark lines.
func (a *app) published(format, out string, force bool) error {
	if err := sheet.CheckFormat(format); err != nil {
		return fail.Input("the published figures have no windows for %s", format).Try("take text, md, csv or json, and see percore compare published RUN")
	}
	studies, err := published.Studies()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := sheet.Write(&text, format, published.Document(studies), published.ListingOf(studies)); err != nil {
		return err
	}
	if out != "" {
		return a.writeOut(out, text.Bytes(), force)
	}
	_, err = a.stdout.Write(text.Bytes())
	return err
}

// open reads what a person named: a run, or the study's raw folder.
func (a *app) open(arg string) (source, error) {
	dir, studys, err := a.locate(arg)
	if err != nil {
		return source{}, err
	}
	if studys {
		s, err := study.Read(dir)
		if err != nil {
			return source{}, err
		}
		return source{figures.ReadStudy(s), nil, dir}, nil
	}
	st, err := store.Open(dir)
	if err != nil {
		return source{}, err
	}
	return source{figures.ReadStore(st), st, dir}, nil
}

// printReport prints the tables of a results folder to the terminal and leaves
// them in the folder in every other format.
func (a *app) printReport(dir string) error {
	st, err := store.Open(dir)
	if err != nil {
		return err
	}
	if err := a.check(st); err != nil {
		return err
	}
	d, err := a.document(source{figures.ReadStore(st), st, dir}, "")
	if err != nil {
		return err
	}
	return errors.Join(report.Text(a.stdout, d.Report, a.width()), report.Save(dir, d))
}

// verify holds the log of a run against its raw files.
func (a *app) verify(in figures.Measured, st *store.Store) error {
	if st == nil {
		fmt.Fprintln(a.stderr, "verified: these figures are derived from the raw files each time")
		return nil
	}
	problems, err := st.Verify()
	if err != nil {
		return err
	}
	damaged := map[string]bool{} // files, with those that belong to the same window
	for _, p := range problems {
		damaged[p.Path] = damaged[p.Path] || p.Fatal
	}
	for _, w := range in.Windows {
		if files := w.RawFiles(); slices.ContainsFunc(files, func(f string) bool { return damaged[f] }) {
			for _, f := range files {
				damaged[f] = true
			}
		}
	}
	figures, err := st.Rederive()
	if err != nil {
		return err
	}
	figures = append(figures, gates.Verify(st)...)
	// A file that differs gives other figures or none, and that need not be said twice.
	figures = slices.DeleteFunc(figures, func(p store.Problem) bool { return damaged[p.Path] })
	bad := map[string]bool{}
	for _, p := range slices.Concat(st.VerifyLog(), problems, figures) {
		fmt.Fprintf(a.stderr, "%s\n", p)
		if p.Fatal {
			bad[p.Path] = true
		}
	}
	switch n := len(bad); {
	case n == 1 && bad[store.EventsFile]:
		return fail.In(st.Dir(), "the log of the run is not whole").Try("restore the folder from a copy")
	case n > 1 && bad[store.EventsFile]:
		return fail.In(st.Dir(), "the log of the run is not whole and %d raw file(s) do not agree with it", n-1).Try("restore the folder from a copy")
	case n > 0:
		return fail.In(st.Dir(), "%d raw file(s) do not agree with the log of the run", n).Try("restore the folder from a copy")
	case len(in.Windows) == 0:
		fmt.Fprintln(a.stderr, "nothing to verify: no window has been measured in this run")
	default:
		fmt.Fprintf(a.stderr, "verified: %d attempts, every digest, every figure and every gate agrees with the raw files\n", len(in.Windows))
	}
	return nil
}

// warn says what a bare CSV cannot: why figures may not be compared, what is odd
// about what they come from and which cells are incomplete.
func (a *app) warn(r figures.Tables) {
	for _, c := range slices.Concat(r.Caveats, r.Notes) {
		fmt.Fprintf(a.stderr, "note: %s\n", c)
	}
	say := func(c figures.Cell) {
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
// that appears whole or not at all; - is standard output.
func (a *app) writeOut(name string, data []byte, force bool) error {
	data = plaintext.Clean(data)
	if name == "-" {
		_, err := a.stdout.Write(data)
		return err
	}
	return outfile.Write(name, data, force)
}
