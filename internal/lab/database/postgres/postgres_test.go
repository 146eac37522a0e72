package postgres

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/testkit/said"
)

func TestParseFsync(t *testing.T) {
	text, err := os.ReadFile("testdata/pg_test_fsync.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"open_datasync": 5255.928, "fdatasync": 4597.703, "fsync": 4375.451, "open_sync": 2768.416}
	got, err := ParseFsync(text)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	// The run that stops after the first section.
	first, _, _ := strings.Cut(string(text), "(in \"wal_sync_method\" preference order, except fdatasync is Linux's default)\n        open_datasync                      1697")
	got, err = ParseFsync([]byte(first))
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("first section: %v, %v", got, err)
	}
}

func TestParseFsyncRefuses(t *testing.T) {
	const head = "Compare file sync methods using one 8kB write:\n"
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":         {"", "printed no result"},
		"an error":        {"pg_test_fsync: error: could not open output file\n", "printed no result"},
		"cut":             {head + "        fdatasync   ", "line 2"},
		"not a number":    {head + "        fdatasync   many ops/sec  1 usecs/op\n", "line 2"},
		"zero":            {head + "        fdatasync   0.000 ops/sec  1 usecs/op\n", "line 2"},
		"infinite":        {head + "        fdatasync   Inf ops/sec  1 usecs/op\n", "line 2"},
		"twice":           {head + "        fsync   1.0 ops/sec  1 usecs/op\n        fsync   2.0 ops/sec  1 usecs/op\n", "twice"},
		"only n/a":        {head + "        fsync_writethrough    n/a\n", "printed no result"},
		"another section": {"Non-sync'ed 8kB writes:\n        write   1.0 ops/sec  1 usecs/op\n", "printed no result"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFsync([]byte(tt.text))
			if err == nil || !strings.Contains(said.Err(err), tt.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func FuzzParseFsync(f *testing.F) {
	text, err := os.ReadFile("testdata/pg_test_fsync.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("Compare file sync methods using one 8kB write:\n\tfsync 1 ops/sec"))
	f.Add([]byte("Compare file sync methods using one 8kB write:\n fsync n/a*\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseFsync(text)
		if (err == nil) != (len(got) > 0) {
			t.Fatalf("%v with error %v", got, err)
		}
		for name, v := range got {
			if name == "" || !(v > 0) {
				t.Errorf("%q: %v", name, v)
			}
		}
	})
}

func TestSettings(t *testing.T) {
	value := func(settings []Setting, name string) string {
		for _, s := range settings {
			if s.Name == name {
				return s.Value
			}
		}
		return ""
	}
	for _, tt := range []struct {
		memory        int64
		shared, cache string
		caveat        bool
	}{
		{0, "512MB", "1GB", false},
		{2 * gib, "512MB", "1GB", false},
		{gib, "512MB", "1GB", false},
		{gib - mib, "128MB", "256MB", true},
		{512 * mib, "128MB", "256MB", true},
		{256 * mib, "64MB", "128MB", true},
		{6 * mib, "16MB", "32MB", true},
	} {
		settings, caveat := Settings(tt.memory)
		if got := value(settings, "shared_buffers"); got != tt.shared {
			t.Errorf("%d MiB: shared_buffers %s, want %s", tt.memory/mib, got, tt.shared)
		}
		if got := value(settings, "effective_cache_size"); got != tt.cache {
			t.Errorf("%d MiB: effective_cache_size %s, want %s", tt.memory/mib, got, tt.cache)
		}
		if (caveat != "") != tt.caveat {
			t.Errorf("%d MiB: caveat %q", tt.memory/mib, caveat)
		}
		for name, want := range map[string]string{"max_connections": "100", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "random_page_cost": "1.1", "synchronous_commit": "on", "fsync": "on"} {
			if got := value(settings, name); got != want {
				t.Errorf("%d MiB: %s %s, want %s", tt.memory/mib, name, got, want)
			}
		}
	}
	settings, _ := Settings(0)
	if args := strings.Join(Args(settings), " "); !strings.Contains(args, "-c shared_buffers=512MB -c effective_cache_size=1GB") {
		t.Errorf("arguments %s", args)
	}
}

func TestCounters(t *testing.T) {
	out := map[string]float64{}
	for _, row := range []struct{ prefix, json string }{
		{"database", `{"datid": 5, "datname": "percore", "numbackends": 3, "xact_commit": 10, "blk_read_time": 1.5, "checksum_failures": null, "stats_reset": "2026-01-01"}`},
		{"io.client_backend", `{"object": "relation", "writes": 2, "op_bytes": 8192, "fsyncs": null}`},
		{"io.client_backend", `{"object": "temp relation", "writes": 3}`},
		{"io.walsender", `{"writes": 4}`},
		{"wal", `{"wal_bytes": 12345678901}`},
		{"wal", `{"inserted_bytes": 77}`},
	} {
		if err := addCounters(out, row.prefix, row.json); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{
		"database.xact_commit": 10, "database.blk_read_time": 1.5, "io.writes": 9, "io.client_backend.writes": 5,
		"wal.wal_bytes": 12345678901, "wal.inserted_bytes": 77,
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if err := addCounters(out, "wal", "{"); err == nil {
		t.Error("took half a row")
	}
	delta := Delta(map[string]float64{"a": 1, "gone": 1}, map[string]float64{"a": 4, "new": 9})
	if diff := cmp.Diff(map[string]float64{"a": 3}, delta); diff != "" {
		t.Error(diff)
	}
}

func TestSeedID(t *testing.T) {
	a := Seed{Rows: 1000, Subject: "s"}
	for _, other := range []Seed{{Rows: 1001, Subject: "s"}, {Rows: 1000, Subject: "t"}} {
		if a.ID() == other.ID() {
			t.Errorf("%+v and %+v have the same id", a, other)
		}
	}
	if a.ID() != (Seed{Rows: 1000, Subject: "s"}).ID() || len(a.ID()) != 12 {
		t.Errorf("id %q", a.ID())
	}
}
