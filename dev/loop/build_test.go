package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMistakesAreToldOnce(t *testing.T) {
	t.Parallel()
	const out = `building something
# github.com/berth-dev/berth/services/ctl-api/internal/flow
services/ctl-api/internal/flow/next.go:12:9: undefined: Nxt
services/ctl-api/internal/flow/next.go:30:14: not enough arguments in call to Plan
	have (State)
	want (State, Release)
# github.com/berth-dev/berth/pkg/id
pkg/id/id.go:3:1: syntax error: non-declaration statement outside function body
`
	lines := []string{
		"services/ctl-api/internal/flow/next.go:12:9: undefined: Nxt",
		"services/ctl-api/internal/flow/next.go:30:14: not enough arguments in call to Plan",
		"\thave (State)",
		"\twant (State, Release)",
		"pkg/id/id.go:3:1: syntax error: non-declaration statement outside function body",
		"building something",
	}
	var m mistakes
	failed := errors.New("exit status 1")
	told := func(out string, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, m.tell(out, failed)); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	}
	told(out, append(lines, "✗ nothing was restarted: it does not compile"))
	told(out, []string{"✗ still " + lines[0]})
	told("pkg/id/id.go:3:1: syntax error\n", []string{"pkg/id/id.go:3:1: syntax error", "✗ nothing was restarted: it does not compile"})
	told("", []string{"exit status 1", "✗ nothing was restarted: it does not compile"})
}
