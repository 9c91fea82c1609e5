package berth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Problem is an answer of the control plane that says no (RFC 9457). Branch on
// Code; the rest is for people.
type Problem struct {
	Status    int    // the HTTP status
	Code      string // stable across releases, like "conflict"; "" when a proxy answered
	Title     string // the status in words
	Detail    string // what went wrong this time
	Remedy    string // what to do about it, "" when nobody knows
	RequestID string // finds the request in the log of the service, "" when it has none
	// Errors are all single faults of an invalid request.
	Errors []ctlapi.ProblemItem
}

// Error says what went wrong, what to do, and where a fault of the service can
// be looked up.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = strings.ToLower(p.Title)
	}
	if p.Remedy != "" {
		text += " (" + p.Remedy + ")"
	}
	if p.RequestID != "" && p.Status >= http.StatusInternalServerError {
		text += " (request " + p.RequestID + ")"
	}
	return text
}

// CodeOf is the code of the problem that an error is, "" for other errors.
func CodeOf(err error) string {
	var p *Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// read makes a problem of an answer. ok is false when it is not the body of one.
func read(data []byte) (p *Problem, ok bool) {
	var body ctlapi.Problem
	_ = json.Unmarshal(data, &body) // what cannot be read has no status
	if body.Status == 0 {
		return nil, false
	}
	p = &Problem{
		Status: body.Status, Code: body.Code, Title: body.Title,
		Detail: value(body.Detail), Remedy: value(body.Remedy), RequestID: value(body.RequestID), Errors: value(body.Errors),
	}
	return p, true
}

// Unreachable says that nobody answers.
type Unreachable struct {
	URL string // scheme, host and port
	Err error
}

// Error names the reason without the request, which may be long.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("cannot reach Berth at %s: %v", u.URL, innermost(u.Err))
}

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

func innermost(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// NotBerth says that somebody else answers: a web page, or a redirect to another
// host, to which no credentials are sent.
type NotBerth struct {
	Host string
	To   string // scheme, host and port that it sends to, if it does
}

// Error implements error.
func (n *NotBerth) Error() string {
	if n.To != "" {
		return fmt.Sprintf("%s redirects to %s, which gets no credentials: set the address of the control plane itself", n.Host, n.To)
	}
	return n.Host + " answers, but it is not a Berth control plane"
}

// TooLarge says that an answer is larger than Options.MaxAnswer.
type TooLarge struct {
	Path  string
	Limit int64 // bytes
}

// Error implements error.
func (t *TooLarge) Error() string {
	return fmt.Sprintf("the answer of %s is larger than %d bytes", t.Path, t.Limit)
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
