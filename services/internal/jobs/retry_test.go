package jobs

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		failures int
		spread   float64
		want     time.Duration
	}{
		{"soon after the first failure", 1, 0, 250 * time.Millisecond},
		{"then twice as long", 2, 0, 500 * time.Millisecond},
		{"apart from others", 2, 0.5, 562500 * time.Microsecond},
		{"never more than a minute", 10, 0, time.Minute},
		{"also after very many", 99, 0, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := retryAfter(tt.failures, tt.spread); got != tt.want {
				t.Errorf("retryAfter(%d, %v) = %v, want %v", tt.failures, tt.spread, got, tt.want)
			}
		})
	}
}
