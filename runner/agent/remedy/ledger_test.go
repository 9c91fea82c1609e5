package remedy_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/runner/agent/remedy"
)

// book is a ledger whose clock the test moves, and that is opened again at each look.
type book struct {
	t    *testing.T
	path string
	now  time.Time
}

func newBook(t *testing.T) *book {
	t.Helper()
	return &book{t: t, path: filepath.Join(t.TempDir(), "remedies.json"), now: noon}
}

func (b *book) open() *remedy.Ledger {
	b.t.Helper()
	l, err := remedy.Open(b.path, func() time.Time { return b.now })
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (b *book) do(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

var rules = verdict.Rules{UnhealthyAfter: 2, HealthyAfter: 1, SilentAfter: time.Hour}

func (b *book) judge() remedy.Watched {
	b.t.Helper()
	w, err := b.open().Judge("health", rules)
	b.do(err)
	return w
}

func (b *book) outcome(id string, good bool) {
	b.t.Helper()
	b.do(b.open().Add("health", verdict.Outcome{RunID: id, Good: good, At: b.now}))
	b.now = b.now.Add(time.Minute)
}

var about = remedy.Opening{Action: "repair", Of: 3}

func TestLedgerIsKept(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.outcome("before", false) // of a check that nobody watches
	b.do(b.open().Watch([]string{"health"}))
	b.outcome("one", false)
	b.outcome("one", false) // told twice
	if w := b.judge(); w.Verdict != verdict.Unknown || len(w.Recent) != 1 {
		t.Fatalf("after one outcome: %+v", w)
	}
	b.outcome("two", false)
	if w := b.judge(); w.Verdict != verdict.Unhealthy {
		t.Fatalf("verdict = %s", w.Verdict)
	}
	for i := range 30 {
		b.outcome(string(rune('A'+i)), false)
	}
	if n := len(b.judge().Recent); n != verdict.MaxRecent {
		t.Errorf("%d outcomes are kept, want %d", n, verdict.MaxRecent)
	}
	b.do(b.open().Begin("health", about, remedy.Attempt{RunID: "arn_1", Action: "repair", Started: b.now}, false))
	w := b.judge()
	if w.Episode == nil || !w.Episode.Running() || len(w.Episode.Attempts) != 1 || len(b.open().Starts()) != 1 || len(b.open().Open()) != 1 {
		t.Fatalf("counted: %+v, starts %v", w.Episode, b.open().Starts())
	}
	b.do(b.open().Ended("arn_1", b.now, true, ""))
	b.do(b.open().Ended("arn_1", b.now.Add(time.Hour), false, "once more"))
	if e := b.judge().Episode; e.Running() || !e.Attempts[0].OK || !e.Attempts[0].Ended.Equal(b.now) {
		t.Errorf("ended: %+v", e)
	}
}

// Settings that leave a remedy out for a while, and name it again, reset no count.
func TestSettingsForgetNoCount(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.do(b.open().Watch([]string{"health"}))
	b.do(b.open().Begin("health", about, remedy.Attempt{RunID: "arn_1", Started: b.now}, false))
	for range 3 {
		b.do(b.open().Watch(nil))
		b.now = b.now.Add(20 * time.Hour)
		b.do(b.open().Watch([]string{"health"}))
	}
	if e := b.judge().Episode; e == nil || len(e.Attempts) != 1 {
		t.Fatalf("the attempt is forgotten: %+v", e)
	}
	b.do(b.open().Watch(nil))
	b.now = b.now.Add(24 * time.Hour)
	b.do(b.open().Watch(nil))
	untold := b.open().Untold()
	if len(untold) != 1 || untold[0].State != jobspec.RemediationDropped || untold[0].Ended.IsZero() {
		t.Errorf("after a day without: %+v", untold)
	}
}

// Each episode is told as it is, once; what ended waits until it was.
func TestLedgerTells(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.do(b.open().Watch([]string{"health"}))
	for i := range 2 {
		id := string(rune('a' + i))
		b.do(b.open().Begin("health", about, remedy.Attempt{RunID: id, Started: b.now}, false))
		b.do(b.open().Ended(id, b.now, true, ""))
		b.do(b.open().Set("health", about, jobspec.RemediationHelped, ""))
		b.do(b.open().End("health"))
	}
	untold := b.open().Untold()
	if len(untold) != 2 || untold[0].ID == untold[1].ID {
		t.Fatalf("untold = %+v, want two", untold)
	}
	for _, e := range untold {
		b.do(b.open().Tell(e.ID, e.Seq))
	}
	if again := b.open().Untold(); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
	b.do(b.open().Set("health", about, jobspec.RemediationWaiting, "x"))
	e := b.open().Untold()[0]
	b.do(b.open().Set("health", about, jobspec.RemediationWaiting, "y"))
	b.do(b.open().Tell(e.ID, e.Seq)) // as it was
	if again := b.open().Untold(); len(again) != 1 || again[0].Why != "y" {
		t.Errorf("the change while it was told is lost: %+v", again)
	}
	b.do(b.open().End("health"))
	if last := b.open().Untold()[0]; last.State != jobspec.RemediationRecovered {
		t.Errorf("ended without an attempt as %s", last.State)
	}
}

// Nobody knows how much of the budget a damaged ledger had left.
func TestDamagedLedgerHasNoBudget(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.do(os.WriteFile(b.path, []byte("{"), 0o600))
	l, err := remedy.Open(b.path, func() time.Time { return b.now })
	if err == nil || len(l.Starts()) != remedy.PerDay {
		t.Errorf("err %v, %d starts", err, len(l.Starts()))
	}
}
