package postgres

import (
	"context"
	"fmt"
	"strings"
)

// Setting is a configuration parameter, with its value as SHOW prints it.
type Setting struct{ Name, Value string }

const (
	mib = 1 << 20
	gib = 1 << 30
)

// enoughMemory is the least memory, in bytes, that the protocol's settings need.
const enoughMemory = 1 * gib

// Settings are the protocol's settings for a database container with so many
// bytes of memory, 0 for no limit. Below 1 GiB the memory settings are scaled
// down, and the caveat says so; else it is empty.
func Settings(memory int64) (settings []Setting, caveat string) {
	shared, cache, work, maintenance := "512MB", "1GB", "16MB", "256MB"
	if memory > 0 && memory < enoughMemory {
		quarter := powerOfTwo(memory / 4 / mib)
		shared, cache = fmt.Sprintf("%dMB", quarter), fmt.Sprintf("%dMB", 2*quarter)
		work, maintenance = "4MB", fmt.Sprintf("%dMB", max(quarter/2, 1))
		caveat = fmt.Sprintf("the database has %d MiB of memory, less than the %d MiB its published settings need: shared_buffers is %s instead of 512MB, work_mem 4MB instead of 16MB",
			memory/mib, int64(enoughMemory/mib), shared)
	}
	return []Setting{
		{"max_connections", "100"},
		{"shared_buffers", shared},
		{"effective_cache_size", cache},
		{"work_mem", work},
		{"maintenance_work_mem", maintenance},
		{"max_wal_size", "4GB"},
		{"checkpoint_timeout", "15min"},
		{"random_page_cost", "1.1"},
		{"synchronous_commit", "on"},
		{"fsync", "on"},
		{"full_page_writes", "on"},
	}, caveat
}

// powerOfTwo is the largest power of two that is not above n, at least 16.
func powerOfTwo(n int64) int64 {
	p := int64(16)
	for 2*p <= n {
		p *= 2
	}
	return p
}

// Args are the command-line arguments that write each setting out.
func Args(settings []Setting) []string {
	var args []string
	for _, s := range settings {
		args = append(args, "-c", s.Name+"="+s.Value)
	}
	return args
}

// CheckSettings asks the server for each setting and fails when one is not in
// force.
func (s *Server) CheckSettings(ctx context.Context, settings []Setting) error {
	var wrong []string
	err := s.do(ctx, func(c conn) error {
		for _, want := range settings {
			var got string
			if err := c.QueryRow(ctx, "SELECT current_setting($1)", want.Name).Scan(&got); err != nil {
				return err
			}
			if got != want.Value {
				wrong = append(wrong, fmt.Sprintf("%s is %s instead of %s", want.Name, got, want.Value))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading PostgreSQL's settings: %w", err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("PostgreSQL does not run with the protocol's settings: %s", strings.Join(wrong, ", "))
	}
	return nil
}
