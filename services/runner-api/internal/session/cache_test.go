package session_test

import (
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

func voided(s *session.Session) bool {
	select {
	case <-s.Voided():
		return true
	default:
		return false
	}
}

func put(t *testing.T, c *session.Cache, token, runner string, epoch int64) *session.Session {
	t.Helper()
	hash := session.Hash(token)
	_, started := c.Get(hash)
	s := &session.Session{ID: "ses_" + token, RunnerID: runner, Epoch: epoch}
	if !c.Put(hash, s, started) {
		t.Fatalf("put %s: refused", token)
	}
	return s
}

func TestCacheForgetsByRunner(t *testing.T) {
	t.Parallel()
	c := session.NewCache(10)
	a1, a2, b := put(t, c, "a1", "a", 1), put(t, c, "a2", "a", 2), put(t, c, "b", "b", 1)
	c.Forget("a")
	if !voided(a1) || !voided(a2) || voided(b) {
		t.Errorf("voided: a1 %v, a2 %v, b %v; want true, true, false", voided(a1), voided(a2), voided(b))
	}
	if s, _ := c.Get(session.Hash("a2")); s != nil {
		t.Error("a forgotten session is still found")
	}
	if s, _ := c.Get(session.Hash("b")); s != b {
		t.Errorf("found %v, want the session of b", s)
	}
}

func TestCacheRefusesWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	c := session.NewCache(10)
	hash := session.Hash("a")
	_, started := c.Get(hash)
	c.Forget("a") // while the row is being read
	if c.Put(hash, &session.Session{RunnerID: "a"}, started) {
		t.Error("a session that was read before its runner was forgotten is kept")
	}
	if !c.Put(session.Hash("b"), &session.Session{RunnerID: "b"}, started) {
		t.Error("forgetting one runner refuses the session of another")
	}
	_, again := c.Get(hash)
	if !c.Put(hash, &session.Session{RunnerID: "a"}, again) {
		t.Error("a session that was read afterwards is refused")
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := session.NewCache(2)
	a, b := put(t, c, "a", "a", 1), put(t, c, "b", "b", 1)
	c.Get(session.Hash("a")) // used: b is the oldest now
	put(t, c, "c", "c", 1)
	if c.Len() != 2 || voided(a) || !voided(b) {
		t.Errorf("len %d, a voided %v, b voided %v; want 2, false, true", c.Len(), voided(a), voided(b))
	}
	_, started := c.Get(session.Hash("x"))
	for _, runner := range []string{"p", "q", "r"} { // more than it remembers
		c.Forget(runner)
	}
	if c.Put(session.Hash("x"), &session.Session{RunnerID: "p"}, started) {
		t.Error("what was forgotten is itself forgotten: an outdated session was kept")
	}
}

func TestCacheReconcile(t *testing.T) {
	t.Parallel()
	c := session.NewCache(10)
	s := put(t, c, "a", "a", 3)
	c.Reconcile("a", 3, true)
	if voided(s) {
		t.Error("the current session was voided")
	}
	c.Reconcile("a", 4, true)
	if !voided(s) {
		t.Error("an older session was kept")
	}
	s = put(t, c, "a4", "a", 4)
	c.Reconcile("a", 4, false)
	if !voided(s) {
		t.Error("a session of a revoked runner was kept")
	}
	c.Reconcile("unknown", 1, true)
}
