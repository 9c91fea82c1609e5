package fault

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

// Problem is what a user sees of an error: the body of every error answer
// (RFC 9457). RequestID is filled in by the one who writes it.
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      string       `json:"code"`
	Detail    string       `json:"detail,omitempty"`
	Remedy    string       `json:"remedy,omitempty"`
	Errors    []FieldError `json:"errors,omitempty"`
	RequestID string       `json:"request_id,omitempty"`
}

// kinds in order of precedence: an error that is several is shown as the first.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated"},
	{ErrForbidden, http.StatusForbidden, "forbidden"},
	{ErrNotFound, http.StatusNotFound, "not_found"},
	{ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{ErrTooSlow, http.StatusRequestTimeout, "too_slow"},
	{ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{ErrGone, http.StatusGone, "gone"},
	{ErrPreconditionFailed, http.StatusPreconditionFailed, "precondition_failed"},
	{ErrConflict, http.StatusConflict, "conflict"},
	{ErrRateLimited, http.StatusTooManyRequests, "rate_limited"},
	{ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
}

// From says what a user may see of err. The outermost text made by Newf or
// Wrap is the detail; an error without a kind is "internal error" and nothing
// else of it is shown.
func From(err error) Problem {
	p := Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: "internal", Detail: "internal error"}
	switch {
	case KindOf(err) != nil:
		for _, k := range kinds {
			if errors.Is(err, k.err) {
				p.Status, p.Code, p.Detail = k.status, k.code, k.err.Error()
				break
			}
		}
		var u *userError
		if errors.As(err, &u) {
			p.Detail = u.detail
		}
		code := ""
		for a := (*annotated)(nil); errors.As(err, &a); err = a.err {
			p.Remedy = cmp.Or(p.Remedy, a.remedy)
			code = cmp.Or(code, a.code)
			p.Errors = append(p.Errors, a.fields...)
		}
		p.Code = cmp.Or(code, p.Code)
	case errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Code, p.Detail = http.StatusServiceUnavailable, "timeout", "this took too long"
		p.Remedy = "try again"
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// KindOf is the kind of err, or nil for an internal error.
func KindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.err
		}
	}
	return nil
}
