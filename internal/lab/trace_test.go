package lab

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab/engine"
)

func TestCommandLineHoldsNoSecret(t *testing.T) {
	l := &Lab{cfg: Config{Tokens: map[string]oha.Token{"events:read": "aaaa.bbbb.cccc"}}}
	got := l.redact(commandLine(engine.Spec{
		Name: "percore-x", Image: "percore/tools", CPUs: "0-3", Memory: 1 << 30, Network: "percore-net",
		Env:        map[string]string{"PERCORE_DATABASE_PASSWORD": "hunter2"},
		Volumes:    map[string]string{"vol": "/data"},
		Binds:      []engine.Bind{{Host: "/sys/fs/cgroup", Path: "/host/cgroup"}},
		Entrypoint: []string{"oha"}, Cmd: []string{"-H", "Authorization: Bearer aaaa.bbbb.cccc", "http://app:8080/auth"},
	}))
	want := "docker run --name percore-x --cpuset-cpus 0-3 --memory 1GiB --network percore-net --volume vol:/data " +
		"--volume /sys/fs/cgroup:/host/cgroup:ro (1 variables) --entrypoint oha percore/tools -H Authorization: Bearer [token] http://app:8080/auth"
	if got != want || strings.Contains(got, "hunter2") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
