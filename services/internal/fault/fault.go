// Package fault names the kinds of errors that callers branch on and carries
// the text that is meant for users. An error without a kind is an internal
// error: its text goes to our log and never to a user.
//
// The store translates what Postgres says into a kind once, handlers return
// errors as they are, and httpserver renders them once, with [From].
package fault

import (
	"errors"
	"fmt"
)

// The kinds. Compare with errors.Is.
var (
	// ErrNotFound: there is no such thing, or it belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrGone: it was there and is no longer kept.
	ErrGone = errors.New("gone")
	// ErrConflict: the request contradicts what is there now.
	ErrConflict = errors.New("conflict")
	// ErrPreconditionFailed: what the request was based on has changed since its
	// sender read it.
	ErrPreconditionFailed = errors.New("precondition failed")
	// ErrInvalid: the request can never be served as it is.
	ErrInvalid = errors.New("invalid request")
	// ErrForbidden: we know who asks, and they may not.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthenticated: we do not know who asks.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrTooLarge: the body is over the limit of its route.
	ErrTooLarge = errors.New("too large")
	// ErrTooSlow: the body did not arrive in time.
	ErrTooSlow = errors.New("too slow")
	// ErrRateLimited: come back later.
	ErrRateLimited = errors.New("too many requests")
	// ErrUnavailable: something we need is away; the same request may work soon.
	ErrUnavailable = errors.New("unavailable")
)

// FieldError is one fault of a request, with its place: a JSON pointer into
// the body, or a file and line of the app folder.
type FieldError struct {
	Pointer string `json:"pointer,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	// Code is the rule that was broken, lower_snake; may be empty.
	Code string `json:"code,omitempty"`
	// Detail says what is wrong, for people.
	Detail string `json:"message"`
}

// Newf makes an error of a kind whose text is meant for users. A %w in the
// format keeps its operand as a cause for errors.Is, and shows its text too,
// so wrap only what users may read.
func Newf(kind error, format string, args ...any) error {
	text := fmt.Errorf(format, args...)
	return &userError{kind: kind, detail: text.Error(), cause: errors.Unwrap(text)}
}

// Wrap gives cause a kind and a text for users. The text of the cause itself
// is for the log only.
func Wrap(kind, cause error, format string, args ...any) error {
	return &userError{kind: kind, detail: fmt.Sprintf(format, args...), cause: cause}
}

// An Annotation adds to what users see of an error.
type Annotation func(*annotated)

// Code sets the stable, lower_snake code that programs branch on, when the
// kind alone is too coarse.
func Code(code string) Annotation { return func(a *annotated) { a.code = code } }

// Remedy says what to do about it.
func Remedy(format string, args ...any) Annotation {
	return func(a *annotated) { a.remedy = fmt.Sprintf(format, args...) }
}

// Fields lists the single faults of an invalid request.
func Fields(fields ...FieldError) Annotation {
	return func(a *annotated) { a.fields = append(a.fields, fields...) }
}

// With annotates err. It keeps its kind and text; With(nil) is nil. Of two
// annotations of the same sort the outer one wins, and fields add up.
func With(err error, annotations ...Annotation) error {
	if err == nil {
		return nil
	}
	a := &annotated{err: err}
	for _, annotate := range annotations {
		annotate(a)
	}
	return a
}

type userError struct {
	kind   error
	detail string
	cause  error
}

func (e *userError) Error() string {
	if e.cause != nil && e.detail != e.cause.Error() {
		return e.detail + " (" + e.cause.Error() + ")"
	}
	return e.detail
}

func (e *userError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

type annotated struct {
	err    error
	code   string
	remedy string
	fields []FieldError
}

func (a *annotated) Error() string { return a.err.Error() }
func (a *annotated) Unwrap() error { return a.err }
