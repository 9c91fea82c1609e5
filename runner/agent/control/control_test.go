package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/berth-dev/berth/runner/agent/control"
)

func TestAway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"no connection", errors.New("connection refused"), true},
		{"out of order", &control.Error{Status: 503, Code: "unavailable"}, true},
		{"too many", &control.Error{Status: 429, Code: "busy"}, true},
		{"a proxy in between", &control.Error{Status: 403}, true},
		{"an answer", &control.Error{Status: 409, Code: "superseded"}, false},
		{"a wrapped answer", fmt.Errorf("x: %w", &control.Error{Status: 404, Code: "not_found"}), false},
	} {
		if got := control.Away(tc.err); got != tc.want {
			t.Errorf("%s: Away(%v) = %v, want %v", tc.name, tc.err, got, tc.want)
		}
	}
}

func TestRetryEndsWithAnAnswer(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	refused := &control.Error{Status: 409, Code: "superseded"}
	tries := 0
	err := control.Retry(t.Context(), log, "test", func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("connection refused")
		}
		return refused
	})
	if !errors.Is(err, refused) || tries != 3 {
		t.Errorf("Retry = %v after %d tries, want the answer after 3", err, tries)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	err = control.Retry(ctx, log, "test", func(context.Context) error {
		cancel(stopped)
		return errors.New("connection refused")
	})
	if !errors.Is(err, stopped) {
		t.Errorf("Retry = %v, want the cause of the context", err)
	}
}
