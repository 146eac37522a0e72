//go:build integration

package difftest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/enginetest"
)

// TestCandidates compares all candidates of the suite, one after the other, each in
// a fresh container over a fresh database.
func TestCandidates(t *testing.T) {
	e := enginetest.Connect(t)
	suite, err := plan.ReadSuite(enginetest.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	suite.Rows = 1000
	names := []string{lab.ImageTools, lab.ImageDatabase}
	for _, c := range suite.Candidates {
		names = append(names, c.Image)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := plan.Resources{CPUs: "0", Memory: 512 << 20}
	if info.CPUs > 1 {
		all.CPUs = "0-1"
	}
	l, err := lab.New(t.Context(), lab.Config{
		RunID: fmt.Sprintf("difftest-%d", time.Now().UnixNano()),
		Profile: plan.Profile{
			Name: "difftest", DatabaseConnections: 2, SharedCores: true,
			Roles: map[plan.Role]plan.Resources{plan.App: all, plan.DB: all, plan.Load: all},
		},
		Suite:     suite,
		Flavour:   plan.FlavourDebian,
		Images:    enginetest.Images(t, e, names...),
		PublicKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Tokens:    map[string]oha.Token{},
		Hosts:     lab.Local(e),
		Shared:    true,
		Say:       t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	requests, readToken := generate(t, key)
	var outcomes [][]outcome
	var candidates []string
	for _, c := range suite.Candidates {
		if err := l.FreshDatabase(t.Context()); err != nil {
			t.Fatal(err)
		}
		server, err := l.StartCandidate(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, ask(t, &target{name: c.ID, dial: l.Dial(server)}, requests, readToken))
		candidates = append(candidates, c.ID)
		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, requests, candidates, outcomes)
}
