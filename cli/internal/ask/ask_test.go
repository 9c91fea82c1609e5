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
			got, err := person.Ask(t.Context(), ask.Question{Text: "Sure? "})
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
			if asked := strings.Count(out.String(), "Sure? "); asked != tc.asked {
				t.Errorf("asked %d times, want %d", asked, tc.asked)
			}
		})
	}
}

// Who does not know what an answer does types ?, reads, and is asked again.
func TestQuestionMarkExplainsTheAnswers(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]ask.Question{
		"change": ask.AboutChange(ctlapi.Change{}, ""), "all": ask.AboutAll("deploy acme (wfl_1)"), "files": ask.AboutFiles("1 to update"),
	} {
		var out strings.Builder
		person := ask.Person{In: strings.NewReader(" ? \ny\n"), Out: &out}
		if got, err := person.Ask(t.Context(), q); err != nil || got != follow.Approve {
			t.Errorf("%s: got %v, %v; want approve", name, got, err)
		}
		before, after, asked := strings.Cut(strings.TrimPrefix(out.String(), q.Text), q.Text)
		if !asked || after != "" {
			t.Errorf("%s: asked otherwise than twice: %q", name, out.String())
		}
		// Each answer that the question offers is explained, and fits 80 columns.
		for _, offer := range []string{"y, yes", "n, no", "l, later", "?"} {
			first := offer[:1]
			if got, want := strings.Contains(before, "  "+offer), strings.Contains(q.Text, "["+first+"]"); got != want {
				t.Errorf("%s: %q explained: %t, offered: %t", name, offer, got, want)
			}
		}
		for line := range strings.SplitSeq(before, "\n") {
			if len(line) > 80 {
				t.Errorf("%s: a line of %d letters: %s", name, len(line), line)
			}
		}
	}
}

func TestAskAgainReadsOn(t *testing.T) {
	t.Parallel()
	person := ask.Person{In: strings.NewReader("y\nn\n"), Out: io.Discard}
	for _, want := range []follow.Answer{follow.Approve, follow.Deny, follow.Later} {
		if got, err := person.Ask(t.Context(), ask.Question{Text: "?"}); err != nil || got != want {
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
	if got, err := person.Ask(ctx, ask.Question{Text: "?"}); !errors.Is(err, gone) || got != follow.Later {
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
		{ctlapi.Change{}, "", "Approve? [y]es, [n]o (deny), [l]ater, [?]: "},
		{ctlapi.Change{Plan: &ctlapi.PlanSummary{}}, "chg_7", "Approve chg_7? [y]es, [n]o (deny), [l]ater, [?]: "},
		{cut, "", "12 bytes of it are not shown. Approve anyway? [y]es, [n]o (deny), [l]ater, [?]: "},
		{cut, "chg_7", "12 bytes of it are not shown. Approve chg_7 anyway? [y]es, [n]o (deny), [l]ater, [?]: "},
	} {
		if got := ask.AboutChange(tc.change, tc.about).Text; got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
