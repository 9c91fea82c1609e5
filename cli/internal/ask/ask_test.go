package ask_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, typed string
		want        follow.Answer
		asked       int
	}{
		{"yes", "yes\n", follow.Approve, 1},
		{"a letter", "Y\n", follow.Approve, 1},
		{"no", " no \n", follow.Deny, 1},
		{"only Enter decides nothing", "\n", follow.Later, 1},
		{"what is not understood is asked again", "maybe\n\x1b[A\nn\n", follow.Deny, 3},
		{"the input ends", "", follow.Later, 1},
		{"it ends in the middle of a line", "y", follow.Later, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			person := ask.Person{In: strings.NewReader(tc.typed), Out: &out}
			got, err := person.Ask(t.Context(), "Sure? ")
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
			if asked := strings.Count(out.String(), "Sure? "); asked != tc.asked {
				t.Errorf("asked %d times, want %d", asked, tc.asked)
			}
		})
	}
}

func TestAskAgainReadsOn(t *testing.T) {
	t.Parallel()
	person := ask.Person{In: strings.NewReader("y\nn\n"), Out: io.Discard}
	for _, want := range []follow.Answer{follow.Approve, follow.Deny, follow.Later} {
		if got, err := person.Ask(t.Context(), "?"); err != nil || got != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	person := ask.Person{In: silent, Out: io.Discard}
	if got, err := person.Ask(ctx, "?"); !errors.Is(err, gone) || got != follow.Later {
		t.Errorf("got %v, %v; want later and the cause", got, err)
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	cut := ctlapi.Change{Plan: &ctlapi.PlanSummary{NotShownBytes: 12}}
	for _, tc := range []struct {
		change      ctlapi.Change
		about, want string
	}{
		{ctlapi.Change{}, "", "Approve? [y]es, [n]o (deny), [l]ater: "},
		{ctlapi.Change{Plan: &ctlapi.PlanSummary{}}, "chg_7", "Approve chg_7? [y]es, [n]o (deny), [l]ater: "},
		{cut, "", "12 bytes of it are not shown. Approve anyway? [y]es, [n]o (deny), [l]ater: "},
		{cut, "chg_7", "12 bytes of it are not shown. Approve chg_7 anyway? [y]es, [n]o (deny), [l]ater: "},
	} {
		if got := ask.Question(tc.change, tc.about); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
