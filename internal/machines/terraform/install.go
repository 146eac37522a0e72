package terraform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hc-install/product"
	hcreleases "github.com/hashicorp/hc-install/releases"

	"github.com/percore/percore/internal/base/fail"
)

// releases is the place that Terraform is installed from: its maker's, unless a
// test plays one.
type releases struct {
	url       string
	publicKey string // of who signs the checksums
}

// install puts Terraform into the user's cache, after its checksum and the
// signature of that have been verified. A second installation at the same time
// does no harm: the first to be complete stays.
func (o Options) install(ctx context.Context) error {
	target := filepath.Dir(o.installed())
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("installing terraform: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(target), ".install-")
	if err != nil {
		return fmt.Errorf("installing terraform: %w", err)
	}
	defer os.RemoveAll(temp)
	o.Say("installing terraform %s into %s", Installed, target)
	source := &hcreleases.ExactVersion{
		Product:          product.Terraform,
		Version:          version.Must(version.NewVersion(Installed)),
		InstallDir:       temp,
		Timeout:          10 * time.Minute,
		ApiBaseURL:       o.releases.url,
		ArmoredPublicKey: o.releases.publicKey,
	}
	if _, err := source.Install(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The library forgets why it unpacked nothing.
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("what was downloaded does not have its checksum, or holds no terraform")
		}
		return fail.Work("installing terraform %s into %s: %w", Installed, target, err).Try("install terraform or tofu of version %s or newer yourself, and it is used instead", Minimum)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("installing terraform: %w", err)
	}
	// What cannot be run is in the way: a complete one would have been used.
	if _, err := o.inspect(ctx, o.installed()); err != nil {
		if err := os.RemoveAll(target); err != nil {
			return fmt.Errorf("installing terraform: %w", err)
		}
	}
	if err := os.Rename(temp, target); err != nil {
		if _, already := o.inspect(ctx, o.installed()); already == nil {
			return nil
		}
		return fmt.Errorf("installing terraform: %w", err)
	}
	return nil
}
