package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/answers/sizing"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/prices"
)

func newPlanCmd(a *app) *cobra.Command {
	var (
		r                      sizing.Request
		mix, format, priceFile string
		live                   bool
	)
	cmd := &cobra.Command{
		Use:   "plan RUN --rate N --mix read=0.5,write=0.5",
		Short: "what a target rate needs: cores, instances, database cores, money",
		Long: "Plan works out what a target rate needs from the figures of a run: cores by CPU time,\n" +
			"cores by instance, instances, database cores, and with --instance dollars per month and\n" +
			"per million requests, per candidate, with intervals and what is assumed.\n" +
			"RUN is published, the id of a run or the beginning of one, latest, the path of a results\n" +
			"folder, a raw folder of the published study, or figures in the form of results/published:\n" +
			"a file or a folder of files.",
		Example: "  percore plan published --rate 50000 --mix read=1\n  percore plan latest --rate 30000 --mix read=0.5,write=0.5 --headroom 0.3 --instance c8g.xlarge --region eu-central-1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sheet.CheckFormat(format); err != nil {
				return err
			}
			if !cmd.Flags().Changed("rate") {
				return fail.Input("the target rate is missing").Try("give --rate the requests per second")
			}
			if cmd.Flags().Changed("hardware-factor") && r.Hardware == 0 {
				return fail.Input("a hardware factor of 0 makes no sense").Try("give --hardware-factor a number above zero")
			}
			var err error
			if r.Mix, err = sizing.ParseMix(mix); err != nil {
				return err
			}
			if err := r.Check(); err != nil {
				return err
			}
			if live && priceFile != "" {
				return fail.Input("--live-prices and --prices both say where prices come from").Try("give one of them")
			}
			table, err := prices.Shipped()
			switch {
			case priceFile != "":
				table, err = prices.Read(priceFile)
			case live:
				table, err = livePrices(cmd.Context(), cmp.Or(r.Region, prices.DefaultRegion))
			}
			if err != nil {
				return err
			}
			set, err := a.figures(args[0])
			if err != nil {
				return err
			}
			p, err := sizing.Make(set, r, table)
			if err != nil {
				return err
			}
			return sheet.Write(a.stdout, format, p.Document(), p)
		},
	}
	flags := cmd.Flags()
	flags.Var(&number{to: &r.Rate}, "rate", "target in requests per second")
	flags.StringVar(&mix, "mix", "", "share of each scenario in the requests, as in read=0.5,write=0.5")
	flags.Var(&number{to: &r.Headroom, percent: true}, "headroom", "share of the capacity that stays free, as in 0.3 or 30%")
	flags.Var(&number{to: &r.Hardware}, "hardware-factor", "CPU per request of your host over the measured one's, from percore compare (default 1)")
	flags.StringVar(&r.Instance, "instance", "", "instance type, which gives cores, memory and a price")
	flags.StringVar(&r.Region, "region", "", "region of the price (default "+prices.DefaultRegion+")")
	flags.StringVar(&priceFile, "prices", "", "read prices from this `FILE` instead of the shipped table")
	flags.BoolVar(&live, "live-prices", false, "ask AWS's price list for the region instead of the shipped table (needs AWS credentials)")
	flags.StringVar(&format, "format", "text", "text, md, csv or json")
	a.noVerifyFlag(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fail.Input("%w", err).Try("percore plan --help shows how to call it")
	})
	return cmd
}

// number is a flag that holds a number, and says in plain words when it is none.
type number struct {
	to      *float64
	percent bool // 30% may be written for 0.3
}

// Set reads the number.
func (n *number) Set(s string) error {
	text, percent := strings.TrimSpace(s), false
	if n.percent {
		text, percent = strings.CutSuffix(text, "%")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("the number is too large; give it a smaller one")
	case err != nil:
		return errors.New("give it a number")
	case percent:
		v /= 100
	}
	*n.to = v
	return nil
}

// String is the number as a default is shown; none is set, so it is empty.
func (n *number) String() string {
	if n.to == nil || *n.to == 0 {
		return ""
	}
	return strconv.FormatFloat(*n.to, 'g', -1, 64)
}

// Type is what the help calls the value.
func (n *number) Type() string { return "float" }

// livePrices asks AWS what instances cost in a region today.
func livePrices(ctx context.Context, region string) (prices.Table, error) {
	c, err := aws.Open(ctx, aws.Options{Region: region})
	if err != nil {
		return prices.Table{}, err
	}
	return c.PriceTable(ctx)
}
