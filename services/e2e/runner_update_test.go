package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/releaselist"
)

// updateTrial is how long versions may take here until they take work.
const updateTrial = 40 * time.Second

// TestRunnerUpdate brings a newer runner to an install while an engine works, then
// versions that cannot work, and releases that may not run there at all.
func TestRunnerUpdate(t *testing.T) {
	t.Parallel()
	s := startFrom(t, executables(t), "BERTH_UPDATE_TRIAL="+updateTrial.String())
	in := s.probe("acme")
	publisher := newPublisher(t)
	before := in.shown()
	newer := in.executablesOfVersion("99.0.0")

	publisher.offer(s, "99.0.0", newer)
	if got := in.shown(); got.NewestVersion == nil || *got.NewestVersion != "99.0.0" {
		t.Errorf("the runner does not show that it is behind: %+v", got.NewestVersion)
	}
	in.updateFails("99.0.0", "trusts no release key")
	if out, err := in.customer("trust", "release-key", "add", publisher.keyFile); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// An engine works meanwhile, and goes on.
	in.change("updated")
	w := in.deploy(true, "one")
	in.sinceEffect("begin one updated")
	pid := in.pid("runner acme")
	s.must("runners", "update", "acme", "--to", "99.0.0", "--auto-approve")
	in.runs("99.0.0")
	if now := in.pid("runner acme"); now != pid {
		t.Errorf("the runner was pid %d and is %d: a supervisor would have lost it", pid, now)
	}
	if got := in.settled(w.ID); got.State != "succeeded" {
		t.Fatalf("the deploy that was under way: %s", in.explain(got))
	}
	if got := in.shown(); got.NewestVersion != nil {
		t.Errorf("the newest version is shown as behind %s", *got.NewestVersion)
	}
	if w := in.update("99.0.0"); w.State != "succeeded" {
		t.Errorf("the same version again: %s", in.explain(w))
	}
	if len(in.changes("no_change")) == 0 {
		t.Error("the same version again changed something")
	}

	for _, broken := range []struct{ version, runner, why string }{
		{"99.1.0", "#!/bin/sh\nexit 3\n", "ended with exit code 3"},
		{"99.2.0", "#!/bin/sh\nexec sleep 3600\n", "could not take work within " + updateTrial.String()},
	} {
		publisher.offer(s, broken.version, without(broken.runner))
		in.updateFails(broken.version, broken.why)
		in.runs("99.0.0")
	}
	in.change("after")
	if w := in.finished(in.deploy(true, "one").ID, time.Minute); w.State != "succeeded" {
		t.Errorf("a deploy after versions that did not work: %s", in.explain(w))
	}

	newPublisher(t).offer(s, "99.3.0", without("#!/bin/sh\n"))
	in.updateFails("99.3.0", "signature")
	publisher.offer(s, "98.0.0", without("#!/bin/sh\n"))
	in.updateFails("98.0.0", "never accepted here")

	s.signal(in.pid("runner acme"), syscall.SIGKILL)
	in.back("agent")
	in.runs("99.0.0")
	if before.Version == "99.0.0" {
		t.Error("it ran that version from the start")
	}
	if out, err := exec.Command(filepath.Join(s.bin, "berth-verify"), "chain", filepath.Join(in.runnerDir(), "chain.jsonl")).CombinedOutput(); err != nil {
		t.Errorf("the chain: %v: %s", err, out)
	}
}

// publisher makes releases.
type publisher struct {
	t       *testing.T
	key     ed25519.PrivateKey
	keyFile string
}

func newPublisher(t *testing.T) publisher {
	t.Helper()
	public, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := capsule.MarshalPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	p := publisher{t: t, key: key, keyFile: filepath.Join(t.TempDir(), "berth.pub")}
	if err := os.WriteFile(p.keyFile, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// offer publishes a version whose executables are these, by name, and offers it.
func (p publisher) offer(s *system, version string, programs map[string][]byte) {
	p.t.Helper()
	name := releaselist.RunnerArchive(version, runtime.GOOS+"_"+runtime.GOARCH)
	var packed bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	archive := tar.NewWriter(zipped)
	for file, content := range programs {
		h := tar.Header{Name: strings.TrimSuffix(name, ".tar.gz") + "/bin/" + file, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
		if err := archive.WriteHeader(&h); err != nil {
			p.t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		p.t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	list := releaselist.List{Version: version, Files: []releaselist.File{{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(packed.Len())}}}
	envelope, err := capsule.Sign(p.key, capsule.KeyID(p.key.Public().(ed25519.PublicKey)), releaselist.PayloadType, list)
	if err != nil {
		p.t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		p.t.Fatal(err)
	}
	folder := p.t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, name), packed.Bytes(), 0o600), os.WriteFile(filepath.Join(folder, releaselist.FileName), raw, 0o600)); err != nil {
		p.t.Fatal(err)
	}
	s.must("runners", "versions", "add", filepath.Join(folder, name), "--key", p.keyFile)
}

// without is a version that never comes so far that its engine would be started.
func without(runner string) map[string][]byte {
	return map[string][]byte{"berth-runner": []byte(runner), "berth-engine": []byte("#!/bin/sh\nexit 1\n")}
}

// executablesOfVersion builds runner and engine once more, as another version.
func (in *install) executablesOfVersion(version string) map[string][]byte {
	in.t.Helper()
	programs := map[string][]byte{}
	for name, at := range map[string]string{"berth-runner": "./cmd/runner", "berth-engine": "./cmd/engine"} {
		out := filepath.Join(in.t.TempDir(), name)
		// As releases are: small, and without what the race detector adds.
		build := exec.Command("go", "build", "-buildvcs=false", "-o", out, "-ldflags", "-s -w -X github.com/berth-dev/berth/pkg/version.Version="+version, at)
		build.Dir, build.Env = "../../runner", append(os.Environ(), "CGO_ENABLED=0")
		said, err := build.CombinedOutput()
		if err != nil {
			in.t.Fatalf("build version %s: %v\n%s", version, err, said)
		}
		if programs[name], err = os.ReadFile(out); err != nil {
			in.t.Fatal(err)
		}
	}
	return programs
}

func (in *install) shown() (r ctlapi.Runner) {
	in.t.Helper()
	in.get("/runners/"+in.runner, &r)
	return r
}

// runs waits until the runner is online with a version.
func (in *install) runs(version string) {
	in.t.Helper()
	in.eventually(goOnTimeout, "the runner runs "+version, func() error {
		var r ctlapi.Runner
		in.get("/runners/"+in.runner, &r)
		if r.Version != version || !r.Online {
			return fmt.Errorf("it runs %s, online %t", r.Version, r.Online)
		}
		return nil
	})
}

// update starts an update of the runner without asking and waits for its end.
func (in *install) update(version string) ctlapi.Workflow {
	in.t.Helper()
	var w ctlapi.Workflow
	in.post("/installs/"+in.name+"/workflows", map[string]any{"kind": "runner_update", "runner_version": version, "approve_all": true}, &w)
	return in.finished(w.ID, 2*updateTrial+30*time.Second)
}

// updateFails wants an update to fail because of why.
func (in *install) updateFails(version, why string) {
	in.t.Helper()
	began := time.Now()
	w := in.update(version)
	said := in.explain(w)
	in.t.Logf("update to %s, after %s: %s", version, time.Since(began).Round(100*time.Millisecond), said)
	if w.State != "failed" || !strings.Contains(said, why) {
		in.t.Errorf("update to %s is %s, and does not say %q: %s", version, w.State, why, said)
	}
}
