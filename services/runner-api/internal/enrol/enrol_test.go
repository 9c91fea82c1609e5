package enrol_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/runner-api/internal/enrol"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	later, earlier := now.Add(time.Hour), now.Add(-time.Hour)
	tests := []struct {
		name string
		in   enrol.Request
		want enrol.Decision
	}{
		{"a fresh secret binds its first key", enrol.Request{Key: "a", ExpiresAt: later}, enrol.Bind},
		{"the same key repeats", enrol.Request{Key: "a", BoundKey: "a", RunnerKey: "a", ExpiresAt: later}, enrol.Repeat},
		{"the same key repeats also after the secret's time", enrol.Request{Key: "a", BoundKey: "a", RunnerKey: "a", ExpiresAt: earlier}, enrol.Repeat},
		{"another key is an alarm", enrol.Request{Key: "b", BoundKey: "a", RunnerKey: "a", ExpiresAt: later}, enrol.RefuseBound},
		{"another key is an alarm also when the runner is revoked", enrol.Request{Key: "b", BoundKey: "a", RunnerKey: "a", RunnerRevoked: true, ExpiresAt: later}, enrol.RefuseBound},
		{"an unused secret expires", enrol.Request{Key: "a", ExpiresAt: now}, enrol.RefuseExpired},
		{"a revoked runner stays out", enrol.Request{Key: "a", RunnerRevoked: true, ExpiresAt: later}, enrol.RefuseRevoked},
		{"a revoked runner cannot repeat", enrol.Request{Key: "a", BoundKey: "a", RunnerKey: "a", RunnerRevoked: true, ExpiresAt: later}, enrol.RefuseRevoked},
		{"a machine cannot be replaced without consent", enrol.Request{Key: "b", RunnerKey: "a", ExpiresAt: later}, enrol.RefuseEnrolled},
		{"consent replaces it", enrol.Request{Key: "b", RunnerKey: "a", Replaces: true, ExpiresAt: later}, enrol.Replace},
		{"consent expires too", enrol.Request{Key: "b", RunnerKey: "a", Replaces: true, ExpiresAt: now}, enrol.RefuseExpired},
		{"the same machine with a fresh secret replaces nobody", enrol.Request{Key: "a", RunnerKey: "a", Replaces: true, ExpiresAt: later}, enrol.Bind},
		{"a replaced machine cannot come back with its old secret", enrol.Request{Key: "a", BoundKey: "a", RunnerKey: "b", ExpiresAt: later}, enrol.RefuseSuperseded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Now = now
			if got := enrol.Decide(tt.in); got != tt.want {
				t.Errorf("Decide(%+v) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}
