//go:build integration

//integration:apart

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// unpack returns the files of an archive by the name in their one folder.
func unpack(t *testing.T, archive, folder string, made time.Time) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, folder+"/")
		if !ok || !h.ModTime.Equal(made) {
			t.Errorf("%s holds %s of %s", filepath.Base(archive), h.Name, h.ModTime)
		}
		if executable := h.Mode&0o111 != 0; executable != (name == "percore") {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArchives builds archives and looks into them: those of two platforms that
// make cross compiles for as well, with its flags, and this machine's, with the
// flags of the tests. `make release` builds them all as they are given away.
func TestArchives(t *testing.T) {
	made := time.Unix(1700000000, 0)
	t.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(made.Unix()))
	native := target{runtime.GOOS, runtime.GOARCH}
	for name, o := range map[string]options{
		"other platforms": {targets: []target{{"darwin", "arm64"}, {"linux", "arm64"}}, flags: []string{"-gcflags", "all=-N -l"}},
		"this machine":    {targets: []target{native}, flags: []string{"-trimpath=false"}, env: []string{"CGO_ENABLED="}},
	} {
		t.Run(name, func(t *testing.T) {
			o.root, o.version, o.out = "../..", "v1.2.3-test", filepath.Join(t.TempDir(), "dist")
			names, err := release(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(o.out)
			if err != nil || len(left) != len(names) || len(names) != len(o.targets)+1 {
				t.Fatalf("written %v, in the folder %v, %v", names, left, err)
			}
			list, err := os.ReadFile(filepath.Join(o.out, sums))
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range o.targets {
				folder := fmt.Sprintf("percore_1.2.3-test_%s_%s", target.os, target.arch)
				packed, err := os.ReadFile(filepath.Join(o.out, folder+".tar.gz"))
				if err != nil {
					t.Fatal(err)
				}
				sum := fmt.Sprintf("%x", sha256.Sum256(packed))
				if line := sum + "  " + folder + ".tar.gz\n"; !strings.Contains(string(list), line) {
					t.Errorf("%s lacks %s", sums, line)
				}
				files := unpack(t, filepath.Join(o.out, folder+".tar.gz"), folder, made)
				checkFiles(t, o, target, files)
				if target == native {
					checkNative(t, o, folder, files["percore"], sum, made)
				}
			}
		})
	}
}

func checkFiles(t *testing.T, o options, target target, files map[string][]byte) {
	t.Helper()
	if len(files) != 1+len(texts) {
		t.Errorf("the archive for %s/%s holds %d files", target.os, target.arch, len(files))
	}
	for _, name := range texts {
		if want, err := os.ReadFile(filepath.Join(o.root, name)); err != nil || len(want) == 0 || !bytes.Equal(files[name], want) {
			t.Errorf("%s is not the checkout's (%v)", name, err)
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(files["percore"]))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["GOOS"] != target.os || settings["GOARCH"] != target.arch || len(o.env) == 0 && settings["CGO_ENABLED"] != "0" {
		t.Errorf("the command for %s/%s was built with %v", target.os, target.arch, settings)
	}
}

// checkNative runs the command of an archive, and packs it again.
func checkNative(t *testing.T, o options, folder string, command []byte, sum string, made time.Time) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "percore")
	if err := os.WriteFile(binary, command, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "version").CombinedOutput()
	if want := "percore 1.2.3-test, "; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("the released command says %q, %v; want %q", out, err, want)
	}
	again, err := pack(filepath.Join(t.TempDir(), "again.tar.gz"), folder, binary, o.root, made)
	if err != nil || again != sum {
		t.Errorf("packed again the archive differs: %s, %v", again, err)
	}
}
