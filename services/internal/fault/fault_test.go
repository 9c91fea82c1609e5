package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/fault"
)

func TestFrom(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.7: password=hunter2")
	tests := []struct {
		name string
		err  error
		want fault.Problem
	}{
		{
			name: "an error without a kind shows nothing of itself",
			err:  fmt.Errorf("lease job: %w", secret),
			want: fault.Problem{Type: "about:blank", Title: "Internal Server Error", Status: 500, Code: "internal", Detail: "internal error"},
		},
		{
			name: "an outdated If-Match is a refusal of its own",
			err:  fault.Newf(fault.ErrPreconditionFailed, "install acme has changed since you read it"),
			want: fault.Problem{Type: "about:blank", Title: "Precondition Failed", Status: 412, Code: "precondition_failed", Detail: "install acme has changed since you read it"},
		},
		{
			name: "text made for users is shown through any wrapping",
			err:  fmt.Errorf("create: %w", fault.Newf(fault.ErrConflict, "install %q already exists", "acme")),
			want: fault.Problem{Type: "about:blank", Title: "Conflict", Status: 409, Code: "conflict", Detail: `install "acme" already exists`},
		},
		{
			name: "a wrapped cause stays in the log",
			err:  fault.Wrap(fault.ErrUnavailable, secret, "the database is away"),
			want: fault.Problem{Type: "about:blank", Title: "Service Unavailable", Status: 503, Code: "unavailable", Detail: "the database is away"},
		},
		{
			name: "a bare kind says its name",
			err:  fmt.Errorf("get install: %w", fault.ErrNotFound),
			want: fault.Problem{Type: "about:blank", Title: "Not Found", Status: 404, Code: "not_found", Detail: "not found"},
		},
		{
			name: "the outer annotation wins and fields add up",
			err: fault.With(
				fmt.Errorf("sync: %w", fault.With(fault.Newf(fault.ErrInvalid, "2 faults"),
					fault.Code("inner"), fault.Remedy("inner"), fault.Fields(fault.FieldError{Pointer: "/b", Detail: "two"}))),
				fault.Code("config_invalid"), fault.Remedy("fix %s", "them"), fault.Fields(fault.FieldError{File: "a.toml", Line: 3, Detail: "one"})),
			want: fault.Problem{
				Type: "about:blank", Title: "Unprocessable Entity", Status: 422, Code: "config_invalid", Detail: "2 faults", Remedy: "fix them",
				Errors: []fault.FieldError{{File: "a.toml", Line: 3, Detail: "one"}, {Pointer: "/b", Detail: "two"}},
			},
		},
		{
			name: "annotating an internal error reveals nothing",
			err:  fault.With(secret, fault.Remedy("look at 10.0.0.7")),
			want: fault.Problem{Type: "about:blank", Title: "Internal Server Error", Status: 500, Code: "internal", Detail: "internal error"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, fault.From(tt.err)); diff != "" {
				t.Errorf("From(%v) (-want +got):\n%s", tt.err, diff)
			}
		})
	}
}

func TestCausesStayComparable(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, err := range []error{
		fault.Newf(fault.ErrConflict, "taken: %w", cause),
		fault.With(fault.Wrap(fault.ErrConflict, cause, "taken"), fault.Code("x")),
	} {
		if !errors.Is(err, cause) || !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%v: want both its kind and its cause to be found", err)
		}
	}
	if fault.With(nil, fault.Code("x")) != nil {
		t.Error("With(nil) is not nil")
	}
}
