// Package dated decides whether the times that runners report can be.
package dated

import (
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Code is of the refusal.
const Code = "dated_in_future"

// Time is one that was reported, and where it stands.
type Time struct {
	Pointer string // into the body
	At      time.Time
}

// Check refuses times that are further ahead of now than jobspec.MaxAhead: a
// report from the future would stand before all that really comes after it.
func Check(now time.Time, times ...Time) error {
	var late []fault.FieldError
	for _, t := range times {
		if t.At.After(now.Add(jobspec.MaxAhead)) {
			late = append(late, fault.FieldError{Pointer: t.Pointer, Code: Code, Detail: "is in the future"})
		}
	}
	if len(late) == 0 {
		return nil
	}
	return fault.With(fault.Newf(fault.ErrInvalid, "%s is more than %s in the future", late[0].Pointer, jobspec.MaxAhead),
		fault.Code(Code), fault.Remedy("set the clock on the runner's machine"), fault.Fields(late...))
}
