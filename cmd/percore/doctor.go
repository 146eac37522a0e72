package main

import (
	"context"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/doctor"
	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
)

func newDoctorCmd(a *app) *cobra.Command {
	var (
		asJSON        bool
		wantedProfile string
		flavour       string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what a run needs, what is there, what is missing and how to get it",
		Long: "Doctor looks at the engine, its CPUs, memory, control groups, disk, clock and load,\n" +
			"at the image flavour that a run would take and at the tools it needs, and changes\n" +
			"nothing. Exit code 0: a run is possible; 1: a check failed; 2: a flag names what there is not.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.findRoot(); err != nil {
				return err
			}
			switch plan.Flavour(flavour) {
			case plan.FlavourAuto, plan.FlavourPublished, plan.FlavourDebian:
			default:
				return fail.Input("unknown flavour %q", flavour).Try("take auto, published or debian")
			}
			if wantedProfile != "" && wantedProfile != "auto" {
				if _, err := plan.FindProfile(a.root, wantedProfile); err != nil {
					return err
				}
			}
			report, err := a.examine(cmd.Context(), wantedProfile, plan.Flavour(flavour))
			if err != nil {
				return err
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			write := func() error { return report.WriteText(a.stdout, a.width()) }
			if asJSON {
				write = func() error { return report.WriteJSON(a.stdout) }
			}
			if err := write(); err != nil {
				return err
			}
			if !report.Possible {
				return errSilent
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.StringVar(&wantedProfile, "profile", "auto", "the lab that a run would have: auto, m4pro, small or a `FILE`")
	flags.StringVar(&flavour, "flavour", string(plan.FlavourAuto), "where images come from: auto, published or debian")
	return cmd
}

// examine gathers what the doctor looks at.
func (a *app) examine(ctx context.Context, wantedProfile string, flavour plan.Flavour) (doctor.Report, error) {
	s := doctor.Subject{
		Words:    flags,
		Driver:   doctor.Machine{},
		Profiles: func(name string) (plan.Profile, error) { return plan.FindProfile(a.root, name) },
		Profile:  wantedProfile,
		Flavour:  flavour,
		Results:  a.results,
		Chosen:   engine.Chosen(os.Getenv),
	}
	e, err := engine.Connect(ctx, engine.Options{})
	if err != nil {
		s.EngineErr = err
		return doctor.Examine(ctx, s), nil
	}
	defer e.Close()
	suite, files, err := plan.OpenSuite(os.DirFS(a.root), plan.DefaultSuite)
	if err != nil {
		return doctor.Report{}, err
	}
	recipes, err := images.Load(files, suite.Name)
	if err != nil {
		return doctor.Report{}, err
	}
	b := &images.Builder{Engine: e.API(), Recipes: recipes, Names: lab.Images(suite)}
	s.Engine = e
	s.Images = b
	s.Live = func(ctx context.Context) ([]string, error) { return lab.Live(ctx, e) }
	s.Host = hostOf(ctx, e, b)
	return doctor.Examine(ctx, s), nil
}

// hostOf chooses how to read the engine's machine: directly when it is this
// one, else through a container.
func hostOf(ctx context.Context, e *engine.Engine, b *images.Builder) doctor.Host {
	if info, err := e.Info(ctx); err == nil && runtime.GOOS == "linux" && strings.HasPrefix(e.Host(), "unix://") && !info.Desktop {
		// A socket that was handed into a container belongs to a machine whose
		// folders are not here.
		if _, err := os.Stat(info.DataRoot); err == nil {
			return doctor.LocalHost{DataRoot: info.DataRoot}
		}
	}
	return doctor.ContainerHost{Engine: e, Image: func(ctx context.Context) (string, error) {
		for _, f := range []plan.Flavour{plan.FlavourPublished, plan.FlavourDebian} {
			plan, err := b.Plan(ctx, f, lab.ImageTools)
			if err != nil {
				return "", err
			}
			if len(plan.Missing()) == 0 {
				return plan.Tag(lab.ImageTools), nil
			}
		}
		return "", nil
	}}
}
