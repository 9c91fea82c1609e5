package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

func TestScriptsAreShownWithoutTheirEscapes(t *testing.T) {
	t.Parallel()
	a := scripts.Accepted{
		Digest: "sha256:0123", Release: 4, ReleaseID: "rel_1", JobID: "job_1", Since: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		Script: jobspec.Script{Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: true, Action: jobspec.Action{Name: "up", Steps: []jobspec.ActionStep{
			{Name: "one", InlineContents: "rm -rf /\x1b[1A\x1b[2K\necho fine \u202e\n", EnvVars: map[string]string{"A": "b"}},
		}}},
	}
	var out bytes.Buffer
	showScript(&out, a)
	for _, want := range []string{"  | rm -rf /⟨U+001B⟩[1A⟨U+001B⟩[2K\n", "  | echo fine ⟨U+202E⟩\n", "  env A=b\n", "release 4 (rel_1)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestPickScript(t *testing.T) {
	t.Parallel()
	list := []scripts.Accepted{{Digest: "sha256:0123"}, {Digest: "sha256:0145"}}
	for _, tc := range []struct{ digest, want, problem string }{
		{"sha256:0123", "sha256:0123", ""},
		{"014", "sha256:0145", ""},
		{"01", "", "give more"},
		{"ff", "", "no accepted script"},
	} {
		got, err := pickScript(list, tc.digest)
		if got.Digest != tc.want || (tc.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%s: %s %v", tc.digest, got.Digest, err)
		}
	}
}
