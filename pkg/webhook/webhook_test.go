package webhook_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/webhook"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	older, newer := webhook.NewSecret(), webhook.NewSecret()
	body := []byte(`{"id":"evt_1"}`)
	signed := func(change func(h http.Header)) http.Header {
		h := http.Header{}
		if err := webhook.Sign(h, "evt_1", now, body, newer, older); err != nil {
			t.Fatal(err)
		}
		change(h)
		return h
	}
	same := func(http.Header) {}
	tests := []struct {
		name   string
		header http.Header
		body   string
		secret string
		after  time.Duration
		want   error
	}{
		{"the newer secret", signed(same), string(body), newer, 0, nil},
		{"the older one, during a rotation", signed(same), string(body), older, 4 * time.Minute, nil},
		{"another secret", signed(same), string(body), webhook.NewSecret(), 0, webhook.ErrBadSignature},
		{"another body", signed(same), `{"id":"evt_2"}`, newer, 0, webhook.ErrBadSignature},
		{"another id", signed(func(h http.Header) { h.Set("webhook-id", "evt_2") }), string(body), newer, 0, webhook.ErrBadSignature},
		{"a recording", signed(same), string(body), newer, 6 * time.Minute, webhook.ErrTooOld},
		{"a later timestamp on a recording", signed(func(h http.Header) { h.Set("webhook-timestamp", "1800000360") }), string(body), newer, 6 * time.Minute, webhook.ErrBadSignature},
		{"from the future", signed(same), string(body), newer, -6 * time.Minute, webhook.ErrTooOld},
		{"no signature", http.Header{}, string(body), newer, 0, webhook.ErrNotSigned},
		{"only another version", signed(func(h http.Header) { h.Set("webhook-signature", "v2,AAAA") }), string(body), newer, 0, webhook.ErrBadSignature},
	}
	for _, tt := range tests {
		if err := webhook.Verify(tt.header, []byte(tt.body), tt.secret, now.Add(tt.after)); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := webhook.Verify(signed(same), body, "whsec_", now); err == nil {
		t.Error("an empty secret verifies")
	}
}

// The vector that the specification of Standard Webhooks publishes.
func TestVector(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	err := webhook.Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
