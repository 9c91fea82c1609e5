package build

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

func TestWrong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, said, want, remedy string }{
		{"HCL", "main.tf:2: Unclosed configuration block", "src/web/main.tf:2: Unclosed configuration block", "correct line 2 of src/web/main.tf; more"},
		{"HCL with a column", "main.tf:2:7: Unclosed configuration block", "src/web/main.tf:2: Unclosed configuration block", "correct line 2 of src/web/main.tf; more"},
		{"a module in the module", "in modules/db/: x.tf:1: Argument required", "src/web/modules/db/x.tf:1: Argument required", "correct line 1 of src/web/modules/db/x.tf; more"},
		{"a template of Helm", "parse error at (web/templates/a.yaml:3): unclosed action", "src/web/templates/a.yaml:3: unclosed action", "correct line 3 of src/web/templates/a.yaml; more"},
		{"a template of a subchart", "parse error at (web/charts/db/templates/a.yaml:3): unclosed action", "src/web/charts/db/templates/a.yaml:3: unclosed action", "correct line 3 of src/web/charts/db/templates/a.yaml; more"},
		{"YAML", "cannot load values.yaml: error converting YAML to JSON: yaml: line 4: did not find expected key", "src/web/values.yaml:4: did not find expected key", "correct line 4 of src/web/values.yaml; more"},
		{"a rule of Helm", "Chart.yaml: version is required", "src/web/Chart.yaml: version is required", "correct src/web/Chart.yaml; more"},
		{"no file", "there is no Chart.yaml in it", "src/web: there is no Chart.yaml in it", "correct src/web, or what components/web.toml says of its source; more"},
		{"several lines", "main.tf:2: Invalid\n  expression", "src/web/main.tf:2: Invalid expression", "correct line 2 of src/web/main.tf; more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := &job.Job{Spec: jobspec.Spec{File: "components/web.toml", Source: &jobspec.Source{Kind: "archive", Directory: "src/web"}}}
			f := wrong(j, errors.New(tc.said), "more")
			if f.Message != tc.want || f.Remedy != tc.remedy || f.Reason != jobspec.ReasonNeedsChange {
				t.Errorf("got  %q, %q\nwant %q, %q", f.Message, f.Remedy, tc.want, tc.remedy)
			}
		})
	}
}

// What hangs ends after its time, and says meanwhile what it waits for.
func TestPatiently(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Close() })
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	j := &job.Job{Stdout: log}
	conn, err := net.Dial("tcp", hung.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	began := time.Now()
	err = patiently(t.Context(), j, "the registry", time.Second, func() error {
		_, err := conn.Read(make([]byte, 1))
		return err
	})
	if took := time.Since(began); err == nil || err.Error() != "the registry did not answer within 1s" || took > 5*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	said, err := os.ReadFile(log.Name())
	if err != nil || !strings.HasPrefix(string(said), "still waiting for the registry after ") {
		t.Errorf("said %q, %v", said, err)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(job.ErrStopped)
	if err := patiently(stopped, j, "the registry", time.Minute, func() error { select {} }); !errors.Is(err, job.ErrStopped) {
		t.Errorf("a stop gives %v", err)
	}
	broken := errors.New("broken")
	if err := patiently(t.Context(), j, "the registry", time.Minute, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error gives %v", err)
	}
}
