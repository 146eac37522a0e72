package machines

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/plan"
)

// TestAskDestroy: after a signal there is still an answer, and none within a
// while is one too.
func TestAskDestroy(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		keep    bool
		destroy bool
	}{
		{"Ctrl-C is no", context.Canceled, false, false},
		{"no answer", context.DeadlineExceeded, false, true},
		{"no answer, to be kept", context.DeadlineExceeded, true, false},
		{"no terminal any more", io.EOF, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, q := options(t, "aws-graviton")
			o.NoInstall = true
			o.Terraform = filepath.Join(t.TempDir(), "no-such-terraform")
			asked := ""
			o.Confirm = func(ctx context.Context, question string) (bool, error) {
				asked = question
				if end, ok := ctx.Deadline(); !ok || time.Until(end) > answerTime || ctx.Err() != nil {
					t.Errorf("asks with the context %v", ctx)
				}
				return false, tt.err
			}
			d, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			now := time.Now()
			d.f.state = State{ID: d.ID(), Version: stateVersion, Provider: plan.ProviderAWS, USDPerHour: 0.61, Applied: &now, Keep: tt.keep}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			broken := errors.New("host app is gone")
			if err := d.failed(ctx, broken); !errors.Is(err, broken) {
				t.Errorf("the error became %v", err)
			}
			if tried := q.said("destroying the machines"); tried != tt.destroy || !q.said("$0.61 an hour") {
				t.Errorf("destroyed: %v, want %v\n%s", tried, tt.destroy, strings.Join(q.lines, "\n"))
			}
			want := "without an answer within 2m00s they are destroyed"
			if tt.keep {
				want = "without an answer within 2m00s they stay"
			}
			if !strings.Contains(asked, want) {
				t.Errorf("asks %q", asked)
			}
		})
	}
}
