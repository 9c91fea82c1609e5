package agent_test

import (
	"bytes"
	"crypto/ed25519"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/evidence"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
	export "github.com/berth-dev/berth/runner/evidence"
)

// planted are secrets in the places of a data directory that hold some.
const planted = "correct-horse-battery"

// exported makes a folder of a runner that carried a change out.
func exported(t *testing.T) (dir string, o evidence.Options) {
	t.Helper()
	var stop func() error
	c := newChange(t, func(r *runner) { stop = r.start() }, "print "+planted, "secret")
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	c.appears(c.dir.KeptLog(job + ".1")) // once the log has left, which may be after the result
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	trust, err := c.dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	trust.LogURL = strings.Replace(trust.LogURL, "http://", "http://user:"+planted+"@", 1)
	for path, v := range map[string]any{
		c.dir.Trust(): trust, c.dir.Config(): map[string]string{"kubeconfig": planted}, c.dir.Enrolment(): planted,
		filepath.Join(c.dir.CustomerSecrets(), "x.json"): planted, filepath.Join(c.dir.Jobs(), "x", "env.json"): planted,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := datadir.WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := c.dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "evidence")
	if _, err := export.Export(export.Wanted{Dir: c.dir, Out: dir, Since: time.Now().Add(-time.Hour), Now: time.Now(), Version: "1.2.0"}); err != nil {
		t.Fatal(err)
	}
	own := []string{planted}
	for _, name := range []string{"identity", "seal-identity", "salt"} {
		text, err := os.ReadFile(filepath.Join(c.dir.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-----") && !strings.HasPrefix(line, "#") {
				own = append(own, line)
			}
		}
	}
	secretless(t, dir, own)
	return dir, evidence.Options{Keys: map[string]ed25519.PublicKey{capsule.KeyID(keys.Public()): keys.Public()}}
}

// secretless fails if a secret is anywhere in a folder.
func secretless(t *testing.T, dir string, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for i, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("secret %d is in %s", i, path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	dir, o := exported(t)
	report, err := evidence.Verify(dir, o)
	if err != nil || !report.OK() {
		t.Fatalf("Verify = %+v, %v", report.Problems, err)
	}
	if report.Changes != 1 || report.Orders != 1 || len(report.Absent) > 0 || !report.Given || report.Chain.Effects != 1 {
		t.Errorf("report = %+v", report)
	}
	text, err := os.ReadFile(filepath.Join(dir, evidence.ChangesCSV))
	if err != nil || !strings.Contains(string(text), "apply api") || !strings.Contains(string(text), "succeeded") {
		t.Errorf("changes.csv:\n%s\n%v", text, err)
	}
	if logs, err := filepath.Glob(filepath.Join(dir, evidence.LogsDir, "*.json")); err != nil || len(logs) < 2 {
		t.Errorf("digests of logs: %v, %v; want those of plan and apply", logs, err)
	}
	// Another machine's key, and a head of another history.
	other, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if report, err := evidence.Verify(dir, evidence.Options{Keys: map[string]ed25519.PublicKey{capsule.KeyID(other): other}}); err != nil || report.OK() {
		t.Errorf("with another key: %+v, %v", report.Problems, err)
	}
	o.Heads = []chain.SignedHead{{Chain: report.Index.InstallID, Head: chain.Head{Seq: 1, Hash: "sha256:other"}}}
	if report, err := evidence.Verify(dir, o); err != nil || report.OK() {
		t.Errorf("with a head of another history: %+v, %v", report.Problems, err)
	}
}

// Whatever is done to a folder is found, and named.
func TestAttackEvidence(t *testing.T) {
	t.Parallel()
	good, o := exported(t)
	var names []string
	report, err := evidence.Verify(good, o)
	if err != nil || !report.OK() {
		t.Fatalf("Verify = %+v, %v", report.Problems, err)
	}
	for _, f := range report.Index.Files {
		names = append(names, f.Path)
	}
	try := func(what, named string, tamper func(dir string) error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		if err := tamper(dir); err != nil {
			t.Fatal(err)
		}
		report, err := evidence.Verify(dir, o)
		if err != nil || report.OK() || !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, named) }) {
			t.Errorf("%s: problems %v, %v; want %s named", what, report.Problems, err, named)
		}
	}
	for _, name := range append(names, evidence.IndexFile) {
		try("edit "+name, name, func(dir string) error {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if len(text) == 0 {
				return os.WriteFile(path, []byte("x"), 0o600)
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		})
		try("remove "+name, name, func(dir string) error { return os.Remove(filepath.Join(dir, name)) })
		try("cut "+name, name, func(dir string) error {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Size() == 0 {
				return os.Remove(filepath.Join(dir, name))
			}
			return os.Truncate(filepath.Join(dir, name), info.Size()-1)
		})
	}
	try("add", "orders/more.json", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "orders", "more.json"), []byte("{}"), 0o600)
	})
	try("swap", evidence.ChangesCSV, func(dir string) error {
		tmp, a, b := filepath.Join(dir, "tmp"), filepath.Join(dir, evidence.ChangesCSV), filepath.Join(dir, evidence.ChangesJSON)
		if err := os.Rename(a, tmp); err != nil {
			return err
		}
		if err := os.Rename(b, a); err != nil {
			return err
		}
		return os.Rename(tmp, b)
	})
}

// Somebody who has the machine's key and signs another index is found by what the
// files say of each other.
func TestAttackEvidenceSignedAgain(t *testing.T) {
	t.Parallel()
	good, _ := exported(t)
	_, thief, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	report, err := evidence.Verify(good, evidence.Options{})
	if err != nil || !report.OK() || report.Given {
		t.Fatalf("Verify without a key = %+v, %v", report.Problems, err)
	}
	if err := evidence.Seal(good, report.Index, thief); err != nil {
		t.Fatal(err)
	}
	if report, err = evidence.Verify(good, evidence.Options{}); err != nil || report.OK() {
		t.Errorf("signed by another key: %+v, %v; want the chain refused", report.Problems, err)
	}
}
