package streams

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"a gap", &HeadError{Code: logship.CodeGap}, logship.CodeGap},
		{"other lines with these numbers", conflict(logship.Head{}), logship.CodeConflict},
		{"a voided attempt", fault.With(fault.Newf(fault.ErrForbidden, "voided"), fault.Code(logship.CodeClosed)), logship.CodeClosed},
		{"too much", fault.Newf(fault.ErrTooLarge, "too much"), "too_large"},
		{"not zstd", fault.Newf(fault.ErrInvalid, "not zstd"), "invalid"},
		{"a stream of somebody else", noStream("str_1"), "token"},
		{"an expired token", fault.Newf(fault.ErrUnauthenticated, "expired"), "token"},
		{"no database", fmt.Errorf("lock: %w", fault.Newf(fault.ErrUnavailable, "away")), "unavailable"},
		{"a caller who left", fault.Wrap(fault.ErrUnavailable, context.Canceled, "left"), "cancelled"},
		{"ours", errors.New("a bug"), "internal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := refusal(tt.err); got != tt.want {
				t.Errorf("refusal(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}
