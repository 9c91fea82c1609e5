package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// events writes `go test -json` lines for package p of a module.
func events(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

const (
	passA   = `{"Action":"pass","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestA"}`
	passP   = `{"Action":"pass","Package":"github.com/berth-dev/berth/pkg/p","Elapsed":1.5}`
	failP   = `{"Action":"fail","Package":"github.com/berth-dev/berth/pkg/p","Elapsed":1.5}`
	skipB   = `{"Action":"skip","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestB/as_root"}`
	runB    = `{"Action":"output","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestB","Output":"=== RUN   TestB\n"}`
	outB    = `{"Action":"output","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestB","Output":"got 1, want 2\n"}`
	failB   = `{"Action":"fail","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestB"}`
	panicP  = `{"Action":"output","Package":"github.com/berth-dev/berth/pkg/p","Output":"panic: init\n"}`
	buildQ  = `{"Action":"build-output","ImportPath":"github.com/berth-dev/berth/pkg/q","Output":"q.go:1: no\n"}`
	failQ   = `{"Action":"fail","Package":"github.com/berth-dev/berth/pkg/q","FailedBuild":"github.com/berth-dev/berth/pkg/q"}`
	noTests = `{"Action":"skip","Package":"github.com/berth-dev/berth/pkg/none"}`
	okLine  = "  ok    pkg/p                                                  1.5s\n"
	badLine = "  FAIL  pkg/p                                                  1.5s\n"
)

func TestReport(t *testing.T) {
	t.Parallel()
	rootOnly := []skip{{engine: "root", test: "pkg/p.TestB", reason: "switches users"}}
	for _, tc := range []struct {
		name    string
		in      string
		allowed []skip
		want    string
		wantOK  bool
	}{
		{
			name:   "all pass",
			in:     events(passA, passP, noTests),
			want:   "\npkg\n" + okLine + "\n1 passed, 0 failed, 0 skipped\n",
			wantOK: true,
		},
		{
			name: "slow tests are named, the slowest first; their parts are not",
			in: events(strings.Replace(passA, "}", `,"Elapsed":31}`, 1), strings.NewReplacer("TestA", "TestC", "}", `,"Elapsed":90}`).Replace(passA),
				strings.NewReplacer("TestA", "TestC/part", "}", `,"Elapsed":60}`).Replace(passA), passP),
			want:   "\npkg\n" + okLine + "\nslowest tests:\n    90.0s  pkg/p.TestC\n    31.0s  pkg/p.TestA\n\n3 passed, 0 failed, 0 skipped\n",
			wantOK: true,
		},
		{
			name: "a failure shows its output",
			in:   events(passA, runB, outB, failB, failP),
			want: "\npkg\ngot 1, want 2\n" + badLine + "\nfailed:\n  pkg/p.TestB\n\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "what a failed test said is repeated at the end, without the logs between",
			in:   events(passA, strings.Replace(outB, "got 1", `    p_test.go:9: got 1, want 2\n  a log\n    p_test.go:11: got 3`, 1), failB, failP),
			want: "\npkg\n    p_test.go:9: got 1, want 2\n  a log\n    p_test.go:11: got 3, want 2\n" + badLine + "\nfailed:\n  pkg/p.TestB\n" +
				"\nwhat they said first:\n  pkg/p.TestB: p_test.go:9: got 1, want 2\n  pkg/p.TestB: p_test.go:11: got 3, want 2\n\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "with the lines of a message that follow its first",
			in:   events(passA, strings.Replace(outB, "got 1", `    p_test.go:9: exit code 1\n        no such file\n  a log\n        of a program\n    p_test.go:11: got 3`, 1), failB, failP),
			want: "\npkg\n    p_test.go:9: exit code 1\n        no such file\n  a log\n        of a program\n    p_test.go:11: got 3, want 2\n" + badLine + "\nfailed:\n  pkg/p.TestB\n" +
				"\nwhat they said first:\n  pkg/p.TestB: p_test.go:9: exit code 1\n      no such file\n  pkg/p.TestB: p_test.go:11: got 3, want 2\n\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name:    "a reviewed skip is named",
			in:      events(passA, skipB, passP),
			allowed: rootOnly,
			want:    "\npkg\n" + okLine + "\nskipped for lack of root:\n  pkg/p.TestB/as_root: switches users\n\n1 passed, 0 failed, 1 skipped\n",
			wantOK:  true,
		},
		{
			name: "any other skip fails the suite",
			in:   events(passA, skipB, passP),
			want: "\npkg\n" + okLine + "\nskipped, but not in dev/skips.txt:\n  pkg/p.TestB/as_root\n\n1 passed, 0 failed, 1 skipped\n",
		},
		{
			name: "a package that breaks outside of a test",
			in:   events(passA, outB, panicP, failP),
			want: "\npkg\npanic: init\ngot 1, want 2\n" + badLine + "\nfailed:\n  pkg/p\n\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a package that does not compile",
			in:   events(buildQ, failQ),
			want: "\npkg\nq.go:1: no\n  FAIL  pkg/q                                                  0.0s\n\nfailed:\n  pkg/q\n\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "Go's own complaint is passed on, and nothing ran",
			in:   "go: updates to go.mod needed\n",
			want: "go: updates to go.mod needed\n\nno test ran\n\n0 passed, 0 failed, 0 skipped\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tc.in)); err != nil {
				t.Fatal(err)
			}
			ok := r.summary(tc.allowed)
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if ok != tc.wantOK {
				t.Errorf("good is %v, want %v", ok, tc.wantOK)
			}
		})
	}
}

// What the conformance kit counted for an engine is in the summary, wherever the
// test stands.
func TestReportOfConformance(t *testing.T) {
	t.Parallel()
	said := `{"Action":"output","Package":"github.com/berth-dev/berth/pkg/p","Test":"TestA","Output":"    x_test.go:9: conformance: helm_chart ran 18, not applicable 2\n"}`
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(events(said, passA, passP))); err != nil {
		t.Fatal(err)
	}
	r.summary(nil)
	if want := "\nconformance:\n  helm_chart ran 18, not applicable 2\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the summary has no %q:\n%s", want, out.String())
	}
}

func TestParseSkips(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		in      string
		want    []skip
		wantErr string
	}{
		{
			name: "a line, a comment, a blank",
			in:   "# why\n\nroot   runner/agent.TestOwnUser  switches users # reviewed\n",
			want: []skip{{engine: "root", test: "runner/agent.TestOwnUser", reason: "switches users"}},
		},
		{
			name:    "every fault is told",
			in:      "luck a.TestB often\nroot TestB why\nroot a.TestB\n",
			wantErr: "line 1: \"luck\" is none of buildkit, chromium, kubernetes, namespaces, npm, oci, openssh, opentofu, postgres, pulumi, root, s3, shells, terraform, terraform-second, tilt\nline 2: \"TestB\" is not PACKAGE.TEST\nline 3: a.TestB has no reason",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseSkips(strings.NewReader(tc.in))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(skip{})); diff != "" {
				t.Errorf("parseSkips (-want +got):\n%s", diff)
			}
			var text string
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
