package pause_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	began := time.Now()
	if err := pause.For(t.Context(), 10*time.Millisecond); err != nil || time.Since(began) < 10*time.Millisecond {
		t.Errorf("waited %s, %v", time.Since(began), err)
	}
	why := errors.New("the end")
	ctx, end := context.WithCancelCause(t.Context())
	end(why)
	if err := pause.For(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestJittered(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if d := pause.Jittered(time.Second); d < time.Second/2 || d >= time.Second {
			t.Fatalf("%s is not from 0.5 to 1 s", d)
		}
	}
}
