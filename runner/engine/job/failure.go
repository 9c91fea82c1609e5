package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Failure is an error that says how the attempt ended and what to do about it.
// Any other error of an engine is a plain failure, or a cancellation when the
// engine was asked to stop.
type Failure struct {
	Outcome  jobspec.Outcome // "" lets the runner of the engine decide
	Reason   jobspec.Reason  // of OutcomeFailed
	Message  string
	Remedy   string
	Differs  []jobspec.Difference
	ExitCode int // of the tool or the script; 0 when it is not known
}

func (f *Failure) Error() string { return f.Message }

// Failf is a failure with a remedy.
func Failf(remedy, format string, args ...any) *Failure {
	return &Failure{Outcome: jobspec.OutcomeFailed, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

// Wrongf is a failure that comes again until somebody changes what it names: a
// mistake in the app or in an input, a right that is missing. It is not for what
// may pass by itself: an answer that did not come, a lock, a limit, a thing that
// somebody else still makes.
func Wrongf(remedy, format string, args ...any) *Failure {
	f := Failf(remedy, format, args...)
	f.Reason = jobspec.ReasonNeedsChange
	return f
}

// Refusef is for an order that cannot be accepted: nothing was done.
func Refusef(remedy, format string, args ...any) *Failure {
	return &Failure{Outcome: jobspec.OutcomeRefused, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

// Unbegun is the failure of an apply that was asked to stop before its first
// effect: nothing was done. It is nil while nobody asked. Call it right before
// that effect, or with the error of what came before it.
func Unbegun(ctx context.Context, j *Job) error {
	if !errors.Is(context.Cause(ctx), ErrStopped) {
		return nil
	}
	return &Failure{Outcome: jobspec.OutcomeNotStarted, Message: fmt.Sprintf("%sthe apply of %s was not begun", jobspec.StoppedOnRequest, j.Subject())}
}

// Differing adds the field because of which the order is refused.
func (f *Failure) Differing(field, want, got string) *Failure {
	f.Differs = append(f.Differs, jobspec.Difference{Field: field, Want: want, Got: got})
	return f
}

// Why an engine stops before its time, as the cause of its context.
var (
	ErrStopped = errors.New("stopped on request")
	ErrTimeout = errors.New("took longer than it may")
)
