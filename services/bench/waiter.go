package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/runnerclient"
	"github.com/berth-dev/berth/pkg/seal"
)

const (
	longestWait = 55 // seconds, what the agent asks for too

	// settle is how long a claim must have been on its way before it counts as
	// waiting: enough for runner-api to have looked for jobs in vain.
	settle = 25 * time.Millisecond
)

// waiter is a runner of this process. It does no job: it reports each one as
// succeeded as soon as it has it, and waits for the next.
type waiter struct {
	runner

	transport *runnerclient.Transport
	api       *runnerapi.ClientWithResponses
	// asked is when the claim that is held now was sent (Unix, nanoseconds);
	// 0 while none is.
	asked   atomic.Int64
	arrived chan arrival
}

// arrival is a job in the hands of a waiter.
type arrival struct {
	jobID string
	at    time.Time // when the answer to the claim was decoded
}

// newWaiter enrols a runner and opens its session. All waiters share base,
// which must let each have a connection of its own.
func newWaiter(ctx context.Context, base http.RoundTripper, url string, r runner) (*waiter, error) {
	public, private, err := capsule.GenerateKey()
	if err != nil {
		return nil, err
	}
	w := &waiter{runner: r, transport: runnerclient.New(base, private), arrived: make(chan arrival, 1)}
	w.api, err = runnerapi.NewClientWithResponses(url, runnerapi.WithHTTPClient(w.transport.Client()))
	if err != nil {
		return nil, err
	}
	return w, w.begin(ctx, public)
}

func (w *waiter) begin(ctx context.Context, public ed25519.PublicKey) error {
	identity, err := seal.GenerateIdentity()
	if err != nil {
		return err
	}
	enrolled, err := w.api.EnrolWithResponse(ctx, runnerapi.Enrolment{
		Secret: w.secret, PublicKey: capsule.EncodePublicKey(public), SealRecipient: identity.Recipient(), Version: "0.1.0", Facts: runnerapi.Facts{},
	})
	if err := expect(enrolled, err, "enrol"); err != nil {
		return err
	}
	w.transport.SetRunner(w.id)
	opened, err := w.api.OpenSessionWithResponse(ctx, runnerapi.SessionRequest{
		RunnerID: w.id, Version: "0.1.0", Slots: 1, Trust: runnerapi.TrustDevelopment, Switch: runnerapi.SwitchRun,
		Facts: runnerapi.Facts{}, Running: []runnerapi.Attempt{},
	})
	if err := expect(opened, err, "open session"); err != nil {
		return err
	}
	w.transport.SetSession(opened.JSON200.Token)
	return nil
}

// run waits for jobs until ctx ends. The first wait is of random length: later
// the ends of all waits are spread, as those of runners are.
func (w *waiter) run(ctx context.Context) error {
	wait := 1 + rand.IntN(longestWait) //nolint:gosec // spread, not a secret
	for n := 0; ctx.Err() == nil; n++ {
		jobs, at, err := w.claim(ctx, fmt.Sprintf("claim-%06d", n), 1, wait)
		if err != nil {
			return err
		}
		wait = longestWait
		for _, job := range jobs {
			w.arrived <- arrival{job.JobID, at}
			if err := w.report(ctx, job); err != nil {
				return err
			}
		}
	}
	return nil
}

// claim asks for jobs, and says when the answer was decoded.
func (w *waiter) claim(ctx context.Context, claimID string, slots, wait int) ([]runnerapi.Assignment, time.Time, error) {
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { w.asked.Store(time.Now().UnixNano()) },
	})
	answer, err := w.api.ClaimJobsWithResponse(traced, runnerapi.ClaimRequest{ClaimID: claimID, Slots: slots, WaitSeconds: wait, Switch: runnerapi.SwitchRun})
	at := time.Now()
	w.asked.Store(0)
	if err := expect(answer, err, "claim"); err != nil {
		return nil, at, err
	}
	return answer.JSON200.Jobs, at, nil
}

func (w *waiter) report(ctx context.Context, job runnerapi.Assignment) error {
	now := time.Now().UTC()
	answer, err := w.api.PutResultWithResponse(ctx, job.JobID, runnerapi.ResultReport{
		Attempt: job.Attempt,
		Result:  jobspec.Result{JobID: job.JobID, Attempt: job.Attempt, Outcome: jobspec.OutcomeSucceeded, StartedAt: now, FinishedAt: now},
	})
	return expect(answer, err, "report")
}

// untilHeld returns when the waiter's claim is held.
func (w *waiter) untilHeld(ctx context.Context) error {
	for {
		rest := settle
		if asked := w.asked.Load(); asked != 0 {
			rest -= time.Since(time.Unix(0, asked))
		}
		if rest <= 0 {
			return nil
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
	}
}

// response is what all answers of the generated client have.
type response interface {
	StatusCode() int
	GetBody() []byte
}

// expect makes everything but a success an error.
func expect(r response, err error, what string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if r.StatusCode() != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", what, r.StatusCode(), r.GetBody())
	}
	return nil
}
