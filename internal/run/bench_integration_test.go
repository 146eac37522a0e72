//go:build integration

package run

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/run/console"
)

// The fixed rate of the benchmark: low enough for every candidate on one core.
const (
	benchRate   = 500 // requests per second
	benchWindow = 5 * time.Second
)

// BenchmarkCandidate measures the CPU time per request of each candidate and
// scenario at one fixed rate, on this machine's engine.
func BenchmarkCandidate(b *testing.B) {
	ctx := context.Background()
	p, err := Prepare(ctx, Options{Root: "../..", Profile: "auto", Preset: "smoke"}, false)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	s := &bench{Prepared: p, console: console.New(io.Discard, false, nil, false)}
	if err := s.build(ctx); err != nil {
		b.Fatal(err)
	}
	if err := s.up(ctx, "bench"); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.lab.Close(ctx); err != nil {
			b.Error(err)
		}
	}()
	for _, id := range p.Candidates() {
		b.Run("candidate="+id, func(b *testing.B) {
			if err := s.lab.FreshDatabase(ctx); err != nil {
				b.Fatal(err)
			}
			server, err := s.lab.StartCandidate(ctx, id)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := server.Stop(ctx); err != nil {
					b.Error(err)
				}
			}()
			for _, sc := range p.Suite.Scenarios {
				l := protocol.Load{Streams: []protocol.Stream{{Scenario: sc, Connections: 16, Target: benchRate}}, Duration: benchWindow, Timeout: p.Preset.Timeout.Std()}
				if _, err := s.lab.Generate(ctx, server, l); err != nil { // warm-up
					b.Fatal(err)
				}
				b.Run("scenario="+sc.ID, func(b *testing.B) {
					for b.Loop() {
						m, err := s.lab.Measure(ctx, server, l)
						if err != nil {
							b.Fatal(err)
						}
						report(b, m)
					}
				})
			}
		})
	}
}

// report turns a measurement into the benchmark's metrics.
func report(b *testing.B, m protocol.Measurement) {
	b.Helper()
	out, err := oha.Parse("oha", m.OHA[0])
	if err != nil {
		b.Fatal(err)
	}
	series, err := cgroup.ReadSeries(bytes.NewReader(m.CGroup[0].Lines), "samples")
	if err != nil {
		b.Fatal(err)
	}
	w, err := measure.Of([]measure.Output{{Result: out}}, measure.Samples(series), string(plan.App), string(plan.DB), benchWindow)
	if err != nil {
		b.Fatal(err)
	}
	if w.Failed > 0 || w.OK == 0 {
		b.Fatalf("%d of %d requests failed", w.Failed, w.Answered)
	}
	b.ReportMetric(w.AppCPUUS, "cpu-µs/req")
	b.ReportMetric(w.DBCPUUS, "db-cpu-µs/req")
	b.ReportMetric(w.Achieved, "req/s")
	b.ReportMetric(w.P99MS, "p99-ms")
	b.ReportMetric(0, "ns/op")
}
