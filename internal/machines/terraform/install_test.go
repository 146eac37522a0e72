package terraform

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/percore/percore/internal/testkit/said"
)

// maker plays the place that Terraform is installed from, with a program that
// says it is Terraform, and a key to sign with.
func maker(t *testing.T, change func(files map[string][]byte, archive string)) releases {
	t.Helper()
	entity, err := openpgp.NewEntity("a maker", "", "maker@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var key bytes.Buffer
	w, err := armor.Encode(&key, openpgp.PublicKeyType, nil)
	if err == nil {
		err = entity.Serialize(w)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	header := &zip.FileHeader{Name: "terraform", Method: zip.Deflate}
	header.SetMode(0o755)
	f, err := z.CreateHeader(header)
	if err == nil {
		_, err = fmt.Fprintf(f, "#!/bin/sh\nprintf 'Terraform v%s\\n'\n", Installed)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("terraform_%s_%s_%s.zip", Installed, runtime.GOOS, runtime.GOARCH)
	sums := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(archive.Bytes()), name)
	var signature bytes.Buffer
	if err := openpgp.DetachSign(&signature, entity, bytes.NewReader(sums), nil); err != nil {
		t.Fatal(err)
	}
	base := "terraform_" + Installed + "_SHA256SUMS"
	index, err := json.Marshal(map[string]any{
		"name": "terraform", "version": Installed, "shasums": base, "shasums_signature": base + ".sig",
		"builds": []any{map[string]any{"name": "terraform", "version": Installed, "os": runtime.GOOS, "arch": runtime.GOARCH, "filename": name, "url": "https://elsewhere.invalid/terraform/" + Installed + "/" + name}},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"index.json": index, base: sums, base + ".sig": signature.Bytes(), name: archive.Bytes()}
	if change != nil {
		change(files, name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[path.Base(r.URL.Path)]
		if !ok || path.Dir(r.URL.Path) != "/terraform/"+Installed {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, ".json") {
			w.Header().Set("Content-Type", "application/json")
		} else if strings.HasSuffix(r.URL.Path, ".zip") {
			w.Header().Set("Content-Type", "application/zip")
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return releases{url: server.URL, publicKey: key.String()}
}

// Where nothing is found it is installed, once.
func TestInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("TERRAFORM", "")
	var said []string
	o := Options{CacheDir: t.TempDir(), Install: true, Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }, releases: maker(t, nil)}
	// What an installation left that was cut off is replaced.
	if err := os.MkdirAll(filepath.Dir(o.installed()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.installed(), []byte("half of"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b, err := Find(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if b.Name != "terraform" || b.Version != Installed || b.Path != o.installed() {
			t.Errorf("found %+v", b)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "installing terraform "+Installed) {
		t.Errorf("it said %q", said)
	}
	if names := list(t, filepath.Join(o.CacheDir, "terraform")); len(names) != 1 {
		t.Errorf("it left %q", names)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	o.CacheDir = t.TempDir()
	if _, err := Find(cancelled, o); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// What cannot be trusted is not installed.
func TestInstallRefuses(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("TERRAFORM", "")
	sums := "terraform_" + Installed + "_SHA256SUMS"
	for _, tt := range []struct {
		name   string
		change func(files map[string][]byte, archive string)
		want   string
	}{
		{"another archive", func(f map[string][]byte, a string) { f[a] = append(f[a], 'x') }, "does not have its checksum"},
		{"other checksums", func(f map[string][]byte, _ string) { f[sums] = append(f[sums], '\n') }, "signature"},
		{"nothing there", func(f map[string][]byte, _ string) { delete(f, "index.json") }, "404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{CacheDir: t.TempDir(), Install: true, releases: maker(t, tt.change)}
			_, err := Find(t.Context(), o)
			if err == nil || !strings.Contains(said.Err(err), tt.want) || !strings.Contains(said.Err(err), "install terraform or tofu of version "+Minimum+" or newer yourself") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if names := list(t, filepath.Join(o.CacheDir, "terraform")); len(names) != 0 {
				t.Errorf("it left %q", names)
			}
		})
	}
}
