package aws

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// AddressURL answers with the address that a request comes from. It is AWS's
// own, so that nobody else hears of the run.
const AddressURL = "https://checkip.amazonaws.com/"

// CallerAddress asks url (empty: AddressURL) for the address that this machine
// is seen at, as the network of that one address.
func CallerAddress(ctx context.Context, url string) (netip.Prefix, error) {
	if url == "" {
		url = AddressURL
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	cannot := func(err error) (netip.Prefix, error) {
		return netip.Prefix{}, fail.Work("asking %s for this machine's public address: %w", url, err).Try("give the network that may reach the machines with %s", fail.Setting("ssh-from").To("ADDRESS/32"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return cannot(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return cannot(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1024))
	switch {
	case err != nil:
		return cannot(err)
	case answer.StatusCode != http.StatusOK:
		return cannot(fmt.Errorf("the answer is %s", answer.Status))
	}
	p, err := parseAddress(string(text))
	if err != nil {
		return cannot(err)
	}
	return p, nil
}

// parseAddress reads the answer of an address service: one public IPv4 address.
func parseAddress(text string) (netip.Prefix, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("the answer is no address")
	}
	a = a.Unmap()
	switch {
	case !a.Is4():
		return netip.Prefix{}, fmt.Errorf("%s is no IPv4 address, and the machines have only those", a)
	case !a.IsGlobalUnicast() || a.IsPrivate():
		return netip.Prefix{}, fmt.Errorf("%s is no public address", a)
	}
	return netip.PrefixFrom(a, 32), nil
}

// minSSHBits is the widest network that may reach the machines; infra/aws has
// the same limit.
const minSSHBits = 16

// Network reads what a user gives for --ssh-from: an IPv4 network or a single
// address. Everybody's network is refused.
func Network(text string) (netip.Prefix, error) {
	s := strings.TrimSpace(text)
	if !strings.Contains(s, "/") {
		s += "/32"
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil || !p.Addr().Is4():
		return netip.Prefix{}, fail.Input("%q is no IPv4 network", text).Try("write %s as in 203.0.113.7/32", fail.Setting("ssh-from"))
	case p.Bits() < minSSHBits:
		return netip.Prefix{}, fail.Input("the network %s would open ssh to too many", p).Try("give %s the address that you come from, as in 203.0.113.7/32", fail.Setting("ssh-from"))
	}
	return p.Masked(), nil
}
