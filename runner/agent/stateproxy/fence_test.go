package stateproxy_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// An attempt that the customer has shut out takes no lock and writes no state, through
// any door, nor when a later agent serves it again. What it brings is kept.
func TestFencedAttemptWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	if status, text := b.ask(http.MethodPost, "/lock", lock); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if err := stateproxy.Fence(b.dir, "test"); err != nil {
		t.Fatal(err)
	}
	if status, text := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusConflict || !strings.Contains(text, "customer has freed") {
		t.Errorf("a write: %d %s", status, text)
	}
	if status, text := b.ask(http.MethodPost, "/lock", lock); status != http.StatusConflict {
		t.Errorf("a lock: %d %s", status, text)
	}
	if _, err := b.proxy.Push(t.Context(), []byte(state)); err == nil {
		t.Error("a state that could not be saved was pushed")
	}
	if err := b.proxy.Finish(t.Context()); err != nil {
		t.Errorf("finish: %v", err)
	}
	if len(b.writes) != 0 || len(b.locked) != 1 {
		t.Errorf("%d writes, %d locks", len(b.writes), len(b.locked))
	}
	if kept, err := filepath.Glob(filepath.Join(b.dir, "refused-state-3.json")); err != nil || len(kept) != 1 {
		t.Errorf("evidence: %v, %v", kept, err)
	}
	if err := stateproxy.Fence(filepath.Join(b.dir, "gone"), "test"); err != nil {
		t.Errorf("an attempt that is over: %v", err)
	}
}

// The vendor is told as much as the customer lets it, never what the state marks as
// sensitive nor what the attempt knows as a secret.
func TestTells(t *testing.T) {
	t.Parallel()
	const secretInPlain = `{"version":4,"serial":3,"lineage":"lin","terraform_version":"1.11.4","outputs":{"url":{"value":"http://x"},"token":{"value":"t0ken-of-state","sensitive":true}},` +
		`"resources":[{"mode":"managed","type":"local_file","name":"f","instances":[{"index_key":"key-with-sealed-input","attributes":{"content":"secret content","copy":"has t0ken-of-state in it","name":"x","of":"sealed-input","n":9007199254740993},` +
		`"sensitive_attributes":[[{"type":"get_attr","value":"content"}]]}]}]}`
	for _, tc := range []struct {
		level tfstate.Level
		has   []string
		not   []string
	}{
		{"", []string{`"local_file":1`, `"level":"counts"`}, []string{"local_file.f", "http://x"}},
		{tfstate.Counts, []string{`"local_file":1`}, []string{"local_file.f", "http://x", "1.11.4x"}},
		{tfstate.Addresses, []string{"local_file.f", `"terraform_version":"1.11.4"`}, []string{"http://x", `"name"`}},
		{tfstate.Attributes, []string{"local_file.f", "http://x", `"name":"x"`, "(sensitive)", "9007199254740993"}, nil},
	} {
		b := newBench(t, true)
		var told []string
		b.proxy.Tells = tc.level
		b.proxy.Redact = func(tree any) any {
			raw, err := json.Marshal(tree)
			if err != nil {
				t.Error(err)
			}
			return json.RawMessage(strings.ReplaceAll(string(raw), "sealed-input", "(redacted)"))
		}
		b.proxy.Told = func(_ int64, _ int, digest string) { told = append(told, digest) }
		b.ask(http.MethodPost, "/lock", lock)
		if status, text := b.ask(http.MethodPost, "/?ID=L1", secretInPlain); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		raw, err := json.Marshal(b.writes[0].Summary)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.has {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%q lacks %s: %s", tc.level, want, raw)
			}
		}
		for _, not := range append(tc.not, "t0ken", "secret content", "sealed-input") {
			if strings.Contains(string(raw), not) {
				t.Errorf("%q tells %s: %s", tc.level, not, raw)
			}
		}
		if (len(told) == 1) != (tc.level == tfstate.Attributes) {
			t.Errorf("%q: %d records", tc.level, len(told))
		}
	}
}
