package terraform

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func TestEventsBecomeLines(t *testing.T) {
	t.Parallel()
	const stream = `{"@message":"Terraform 1.11.4","type":"version"}
{"@message":"a.b: Plan to create","type":"planned_change"}
{"@message":"x","type":"apply_start","hook":{"resource":{"addr":"a.b"},"action":"create"}}
{"@message":"x","type":"apply_progress","hook":{"resource":{"addr":"a.b"},"action":"create","elapsed_seconds":10}}
{"@message":"x","type":"provision_progress","hook":{"resource":{"addr":"a.b"},"provisioner":"local-exec","output":"hello"}}
{"@message":"x","type":"apply_complete","hook":{"resource":{"addr":"a.b"},"action":"create","id_key":"id","id_value":"i-1","elapsed_seconds":12}}
{"@message":"x","type":"apply_errored","hook":{"resource":{"addr":"a.c"},"action":"update","elapsed_seconds":1}}
{"@message":"Warning: old","type":"diagnostic","diagnostic":{"severity":"warning","summary":"Deprecated","detail":"Use\n  another."}}
{"@message":"Error: no","type":"diagnostic","diagnostic":{"severity":"error","summary":"Denied","detail":"Not allowed.","address":"a.c","range":{"filename":"main.tf","start":{"line":7}},"snippet":{"values":[{"statement":"is \"hunter2\""}]}}}
panic: a provider crashed
{"@message":"Apply complete!","type":"change_summary","changes":{"operation":"apply"}}
{"@message":"Outputs: 1","type":"outputs","outputs":{"token":{"value":"hunter2"}}}
{"@message":"cut off`
	const want = `a.b: creating…
a.b: still creating, 10 s
a.b: | hello
a.b: created in 12 s [i-1]
a.c: failed after 1 s
Warning: Deprecated: Use another.
Error: a.c: Denied (main.tf:7): Not allowed.
panic: a provider crashed
Apply complete!
{"@message":"cut off
`
	for _, size := range []int{1, 7, len(stream)} {
		var log bytes.Buffer
		e := newEvents(&log)
		for chunk := range slices.Chunk([]byte(stream), size) {
			if _, err := e.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		e.flush()
		if got := log.String(); got != want {
			t.Errorf("in pieces of %d bytes:\n%s\nwant\n%s", size, got, want)
		}
		if got := e.firstError(errors.New("exit status 1")); got != "a.c: Denied (main.tf:7): Not allowed." {
			t.Errorf("first error %q", got)
		}
		if e.completed() {
			t.Error("an apply with an error counts as completed")
		}
	}
}

func TestFirstErrorOfStderr(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ stderr, want string }{
		{"exit status 1\n\nError: Invalid value\n\n  on main.tf line 3:\n   3: x\n\nA number is needed.\n\nError: Another\n", "Invalid value on main.tf line 3: 3: x A number is needed."},
		{"exit status 1\n\n╷\n│ Error: Framed\n│ \n│ In a box.\n╵\n", "Framed In a box."},
		{"signal: killed\n", "signal: killed"},
	} {
		if got := firstError(errors.New(tc.stderr)); got != tc.want {
			t.Errorf("%q gives %q, want %q", tc.stderr, got, tc.want)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want, have string
		ok         bool
	}{
		{"", "1.11.4", true},
		{"1.11.4", "1.11.4", true},
		{"1.11.4", "1.11.5", false},
		{">= 1.9, < 2", "1.11.4", true},
		{"~1.11", "1.12.0", false},
		{"1.x", "1.12.0", true},
		{"newest", "1.12.0", false},
	} {
		if err := checkVersion(tc.want, tc.have, "component x"); (err == nil) != tc.ok {
			t.Errorf("%q with %s: %v", tc.want, tc.have, err)
		}
	}
}
