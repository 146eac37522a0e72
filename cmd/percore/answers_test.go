package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/percore/percore/internal/base/fail"
)

// TestAnswers runs the commands that answer from results folders, as a session
// at a terminal would. The command percore runs in this process.
func TestAnswers(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/answers",
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root)
			env.Setenv("STUDY", filepath.Join(root, "internal/evidence/study/testdata/php-go-bench"))
			return os.Mkdir(filepath.Join(env.WorkDir, "results"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE ARGS… runs percore and compares its exit code; what it
			// printed is in the files stdout.txt and stderr.txt.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE ARGS")
				}
				var out, errs bytes.Buffer
				all := append([]string{"--root", ts.Getenv("ROOT"), "--results", ts.MkAbs("results")}, args[1:]...)
				code := execute(t.Context(), all, &out, &errs)
				ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), out.Bytes(), 0o644))
				ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), errs.Bytes(), 0o644))
				if want := map[string]int{"0": 0, "1": fail.CodeFailed, "2": fail.CodeInput}[args[0]]; code != want {
					ts.Fatalf("exit code %d, want %s; stderr: %s", code, args[0], errs.String())
				}
				if code == fail.CodeInput && bytes.Count(errs.Bytes(), []byte("\n")) != 1 {
					ts.Fatalf("not one sentence: %s", errs.String())
				}
			},
		},
	})
}
