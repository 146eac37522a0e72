package run

import (
	"sync"
	"time"

	"github.com/percore/percore/internal/evidence/oha"
)

// Tokens are valid for a while longer than the load they are sent with, and are
// replaced when less than spare would be left at its end: clocks of hosts differ
// a little, and so does how long a load takes.
const (
	tokenLife = 2 * time.Hour
	spare     = 30 * time.Minute
)

// tokens signs the run's tokens anew before a load would outlive them. A machine
// may sleep between two windows for as long as it likes.
type tokens struct {
	sign func(expires time.Time) (map[string]oha.Token, error) // scope -> token
	now  func() time.Time

	mu      sync.Mutex
	expires time.Time
}

// renew returns tokens that are valid for a time yet, or none where those that it
// returned before are.
func (t *tokens) renew(valid time.Duration) (map[string]oha.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().Round(0) // the wall clock: the monotonic one stands still while a machine sleeps
	if t.expires.Sub(now) >= valid+spare {
		return nil, nil
	}
	expires := now.Add(valid + tokenLife)
	signed, err := t.sign(expires)
	if err != nil {
		return nil, err
	}
	t.expires = expires
	return signed, nil
}
