package unlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/unlock"
)

// plane has one lock; retakes is how often an attempt that was on its way takes it again.
type plane struct {
	held    *runnerapi.HeldLock
	retakes int
	away    error
	did     []string
}

func (p *plane) StateLock(context.Context, string) (*runnerapi.HeldLock, error) {
	return p.held, p.away
}

func (p *plane) UnlockState(_ context.Context, _ string, in runnerapi.UnlockRequest) error {
	p.did = append(p.did, "unlock "+in.LockID)
	if p.retakes > 0 {
		p.retakes--
		p.held.Lock.LockID = "again"
		return nil
	}
	p.held = nil
	return nil
}

func TestDo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		state   string // of the holder's job; "" for no lock
		here    bool
		retakes int
		in      unlock.Request
		record  error
		freed   bool
		err     string
		did     string
	}{
		{name: "nobody holds it", in: unlock.Request{Free: true}},
		{name: "a look changes nothing", state: "failed"},
		{name: "the job has ended", state: "failed", in: unlock.Request{Free: true, LockID: "L"}, freed: true, did: "record, fence job_1.2, unlock L"},
		{name: "the job runs", state: "leased", in: unlock.Request{Free: true}, err: "has not ended"},
		{name: "the job waits to be given out again", state: "queued", in: unlock.Request{Free: true}, err: "has not ended"},
		{name: "it has ended for the vendor, and not on this machine", state: "failed", here: true, in: unlock.Request{Free: true}, err: "has not ended"},
		{name: "by force", state: "leased", here: true, in: unlock.Request{Free: true, Force: true}, freed: true, did: "record forced, fence job_1.2, unlock L"},
		{name: "another one took it", state: "failed", in: unlock.Request{Free: true, Force: true, LockID: "M"}, err: "another job has taken the lock"},
		{name: "no record, no deed", state: "failed", in: unlock.Request{Free: true}, record: errors.New("disk full"), err: "disk full", did: "record"},
		{name: "a lock that was on its way", state: "leased", retakes: 1, in: unlock.Request{Free: true, Force: true}, freed: true, did: "record forced, fence job_1.2, unlock L, unlock again"},
		{name: "a lock that comes back for ever", state: "leased", retakes: 9, in: unlock.Request{Free: true, Force: true}, err: "again and again", did: "record forced, fence job_1.2, unlock L, unlock again, unlock again"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := &plane{retakes: tc.retakes}
			if tc.state != "" {
				p.held = &runnerapi.HeldLock{JobState: tc.state, Lock: runnerapi.Lock{LockID: "L", JobID: "job_1", Attempt: 2, Info: map[string]any{"Who": "me"}}}
			}
			got := unlock.Unlocker{
				Locks: p, Here: func(a runnerapi.Attempt) bool { return tc.here && a.JobID == "job_1" && a.Attempt == 2 },
				Fence: func(a runnerapi.Attempt) error { p.did = append(p.did, "fence "+a.JobID+".2"); return nil },
				Record: func(_ context.Context, _ unlock.Held, forced bool) error {
					p.did = append(p.did, strings.TrimSpace("record "+map[bool]string{true: "forced"}[forced]))
					return tc.record
				},
			}.Do(t.Context(), tc.in)
			if got.Freed != tc.freed || (got.Error == "") != (tc.err == "") || !strings.Contains(got.Error, tc.err) || strings.Join(p.did, ", ") != tc.did {
				t.Errorf("got %+v; did %v", got, p.did)
			}
		})
	}
}

func TestPlaneIsAway(t *testing.T) {
	t.Parallel()
	p := &plane{away: errors.New("unreachable")}
	if got := (unlock.Unlocker{Locks: p}).Do(t.Context(), unlock.Request{Free: true}); got.Freed || got.Error != "unreachable" {
		t.Errorf("got %+v", got)
	}
}
