package agent_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// form is a way in which engines are kept apart.
type form string

const (
	// byUsers: the agent is root, each engine has a user of its own.
	byUsers form = "root"
	// byNamespaces: the agent is not root, each engine has a user namespace.
	byNamespaces form = "user"
)

// inForms runs a test in each form.
func inForms(t *testing.T, test func(t *testing.T, f form)) {
	t.Helper()
	for _, f := range []form{byUsers, byNamespaces} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			if f == byUsers && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			if f == byNamespaces {
				needsNamespaces(t)
			}
			test(t, f)
		})
	}
}

// needsNamespaces skips where users who are not root get no namespaces, which
// the agent then has to say: see TestWithoutNamespaces.
func needsNamespaces(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urpfm", "--mount-proc", "true")
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64000, Gid: 64000}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("users get no namespaces here: %v: %s", err, out)
	}
}

// needsOwnNamespace skips where engines do not outlive their agent.
func needsOwnNamespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		needsNamespaces(t)
	}
}

// begin starts the agent as the form wants it, and checks that it shows so.
func (f form) begin(r *runner) {
	r.t.Helper()
	if f == byNamespaces && os.Geteuid() == 0 {
		r.yield()
		r.startProcessAs(r.user())
	} else {
		r.start()
	}
	r.plane.until(r.t, "the session", func() bool { return len(r.plane.sessions) > 0 })
	if !r.isolated() {
		r.t.Fatalf("engines are not kept apart: %v", r.plane.sessions[0].Facts["isolation"])
	}
}

// isolated is what the agent says of itself. It must have a session.
func (r *runner) isolated() bool {
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	return r.plane.sessions[0].Trust == runnerapi.TrustIsolated
}

// user is whose the agent is in a form without root, nil for the test's own.
func (r *runner) user() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}
}

// yield gives the data directory to the user of an agent that is not root.
func (r *runner) yield() {
	r.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(r.dir.Path(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, r.uid, r.uid)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
