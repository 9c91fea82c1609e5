package buildkit

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What buildctl writes becomes lines for people; what is no status is its own words.
func TestSteps(t *testing.T) {
	t.Parallel()
	const progress = `{"vertexes":[{"digest":"a","name":"[internal] load build definition","started":"2026-01-01T00:00:00Z"}]}
{"vertexes":[{"digest":"b","name":"[1/3] FROM shop.internal/base:1@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","started":"2026-01-01T00:00:00Z","completed":"2026-01-01T00:00:01Z","cached":true}]}
{"vertexes":[{"digest":"c","name":"[2/3] RUN make\n  all","started":"2026-01-01T00:00:01Z"}]}
{"logs":[{"vertex":"c","data":"b25lCnR3"},{"vertex":"absent","data":"eA=="}]}
{"logs":[{"vertex":"c","data":"bw=="}],"warnings":[{"short":"b2xk"}]}
not a status
{"vertexes":[{"digest":"c","name":"[2/3] RUN make\n  all","started":"2026-01-01T00:00:01Z","completed":"2026-01-01T00:00:03.5Z","error":"exit code: 2"}]}
{"vertexes":[{"digest":"c","name":"[2/3] RUN make\n  all","started":"2026-01-01T00:00:01Z","completed":"2026-01-01T00:00:03.5Z","error":"exit code: 2"}]}
error: failed to solve: exit code: 2`
	var got []string
	s := &Steps{Log: func(line string) { got = append(got, line) }}
	said := s.follow(bufio.NewReader(strings.NewReader(progress)))
	want := []string{
		"step 1: [1/3] FROM shop.internal/base:1@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"step 1: cached", "step 2: [2/3] RUN make all", "step 2 | one", "warning: old", "step 2 | two", "step 2 failed: exit code: 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := reason(said, nil); got != "exit code: 2" {
		t.Errorf("reason %q", got)
	}
	if s.failed == nil || s.failed.last != "two" {
		t.Errorf("failed %+v", s.failed)
	}
	bases := []Resource{{URI: "pkg:docker/shop.internal/base:1", Digest: map[string]string{"sha256": strings.Repeat("a", 64)}}}
	if diff := cmp.Diff(bases, s.Bases()); diff != "" {
		t.Errorf("bases (-want +got):\n%s", diff)
	}
}

// A step that never ends its line costs no more than its bound.
func TestStepsOfOneLine(t *testing.T) {
	t.Parallel()
	var got []string
	s := &Steps{Log: func(line string) { got = append(got, line) }, numbers: map[string]*step{"a": {number: 1}}, partial: map[string][]byte{}}
	for range 40 {
		s.output("a", []byte(strings.Repeat("x", 1<<10)))
	}
	if len(got) != 2 || len(s.partial["a"]) >= maxLine {
		t.Errorf("%d lines, %d bytes are kept", len(got), len(s.partial["a"]))
	}
}

// Arguments are what every user of the machine can read: no value of a secret is in
// them, and none can become an option.
func TestArguments(t *testing.T) {
	t.Parallel()
	s := Solve{
		Address: "unix:s", Context: "/c", Dockerfile: "/d/Dockerfile", Target: "release", Out: "/out", NoNetwork: true,
		Args: map[string]string{"B": "2,type=local,dest=/", "A": "1"}, Platforms: []string{"linux/amd64", "linux/arm64"}, Secrets: map[string]string{"token": "/in/build/secrets/token"},
	}
	want := []string{
		"--addr", "unix:s", "--timeout", "10", "build", "--progress", "rawjson", "--frontend", "dockerfile.v0",
		"--local", "context=/c", "--local", "dockerfile=/d", "--opt", "filename=Dockerfile", "--opt", "build-arg:SOURCE_DATE_EPOCH=315619200",
		"--opt", "target=release", "--opt", "platform=linux/amd64,linux/arm64", "--opt", "build-arg:A=1", "--opt", "build-arg:B=2,type=local,dest=/",
		"--opt", "force-network-mode=none", "--secret", "id=token,src=/in/build/secrets/token",
		"--output", "type=oci,tar=false,dest=/out,rewrite-timestamp=true,oci-mediatypes=true,compression=gzip,force-compression=true",
	}
	if diff := cmp.Diff(want, s.arguments()); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
