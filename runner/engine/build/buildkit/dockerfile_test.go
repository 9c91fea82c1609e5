package buildkit_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/engine/build/buildkit"
)

func TestCheckDockerfile(t *testing.T) {
	t.Parallel()
	pinned := "docker/dockerfile:1.7@sha256:" + strings.Repeat("a", 64)
	for _, tt := range []struct {
		name, text    string
		want, ignored string
		fault         string // what the error says, "" for none
	}{
		{name: "no syntax line", text: "FROM scratch\n# a comment\n", want: "FROM scratch\n# a comment\n"},
		{name: "the one that is built in", text: "# syntax=docker/dockerfile:1\nFROM scratch\n", want: "#\nFROM scratch\n", ignored: "docker/dockerfile:1"},
		{name: "a release of it", text: "#syntax = docker.io/docker/dockerfile:1.7.1\nFROM a", want: "#\nFROM a", ignored: "docker.io/docker/dockerfile:1.7.1"},
		{name: "a release by its digest", text: "# SYNTAX=" + pinned, want: "#", ignored: pinned},
		{name: "lines end as on Windows", text: "# syntax=docker/dockerfile:1\r\nFROM scratch\r\n", want: "#\nFROM scratch\r\n", ignored: "docker/dockerfile:1"},
		{name: "a byte order mark", text: "\xef\xbb\xbf# syntax=docker/dockerfile:1\n", want: "#\n", ignored: "docker/dockerfile:1"},
		{name: "the experimental one", text: "# syntax=docker/dockerfile:1-labs\n", fault: "line 1: its syntax is that of the image docker/dockerfile:1-labs"},
		{name: "another one", text: "# escape=`\n# syntax=evil.internal/frontend\n", fault: "line 2: its syntax is that of the image evil.internal/frontend"},
		{name: "another one after a hashbang", text: "#!/usr/bin/docker\n# syntax=evil/frontend\n", fault: "line 2: "},
		{name: "another one in a comment of two slashes", text: "// syntax=evil/frontend\n", fault: "line 1: "},
		{name: "another one in JSON", text: " {\"syntax\": \"evil/frontend\"}", fault: "it is JSON"},
		{name: "one that only begins like ours", text: "# syntax=docker/dockerfile-evil:1\n", fault: "docker/dockerfile-evil:1"},
		{name: "one of another registry", text: "# syntax=evil.internal/docker/dockerfile:1\n", fault: "evil.internal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ignored, err := buildkit.CheckDockerfile([]byte(tt.text))
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Fatalf("error %v, want %q", err, tt.fault)
				}
				return
			}
			if err != nil || string(got) != tt.want || ignored != tt.ignored {
				t.Errorf("got %q, ignored %q, error %v", got, ignored, err)
			}
		})
	}
}
