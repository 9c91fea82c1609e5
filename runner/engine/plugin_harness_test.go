package engine_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
)

// plugged is a plugin as its author made and signed it.
type plugged struct {
	dir    string
	key    ed25519.PrivateKey
	signer string
}

const shellPlugin = "../../examples/plugin-shell"

// plug signs a copy of the shell plugin.
func plug(t *testing.T) *plugged {
	t.Helper()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	p := &plugged{dir: t.TempDir(), key: key, signer: capsule.EncodePublicKey(pub)}
	copyTree(t, shellPlugin, p.dir)
	p.sign(t)
	return p
}

func (p *plugged) sign(t *testing.T) {
	t.Helper()
	envelope, err := plugin.Sign(p.key, os.DirFS(p.dir))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, plugin.SignatureFile, string(raw))
}

// asks has the plugin of a job ask for permissions, signed by its author without any look
// at them: `berth plugins sign` refuses some.
func (p *plugged) asks(t *testing.T, j *jobDir, permissions string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.dir, plugin.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(raw), `"permissions": {`, `"permissions": {`+permissions+`, `, 1)
	statement := plugin.Statement{Type: "greeting", Version: "1.1.0", Files: map[string]string{}}
	if text == string(raw) {
		t.Fatalf("no permissions in %s", raw)
	}
	p.write(t, plugin.ManifestFile, text)
	err = fs.WalkDir(os.DirFS(p.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == plugin.SignatureFile {
			return err
		}
		file, err := os.ReadFile(filepath.Join(p.dir, name))
		statement.Files[name] = capsule.DigestBytes(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := capsule.ParsePublicKey(p.signer)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := capsule.Sign(p.key, capsule.KeyID(pub), plugin.SignatureType, statement)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(envelope); err != nil {
		t.Fatal(err)
	}
	p.write(t, plugin.SignatureFile, string(raw))
	if err := os.RemoveAll(filepath.Join(j.path, "in/artifact")); err != nil {
		t.Fatal(err)
	}
	copyTree(t, p.dir, filepath.Join(j.path, "in/artifact"))
}

func (p *plugged) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// withoutNetwork starts a process in a network namespace where nothing is up, as the
// agent does.
func withoutNetwork(t *testing.T) []string {
	t.Helper()
	command := []string{"unshare", "--net"}
	if os.Geteuid() != 0 {
		command = []string{"unshare", "--map-current-user", "--net"}
	}
	if err := exec.CommandContext(t.Context(), command[0], append(command[1:], "true")...).Run(); err != nil {
		t.Skip("no namespaces: the kernel gives none to this user")
	}
	return command
}

func (p *plugged) job(t *testing.T, operation jobspec.Operation, config map[string]any) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindPlugin, Operation: operation,
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "demo"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/demo", Digest: "sha256:" + strings.Repeat("a", 64)},
		Work:     jobspec.Work{Plugin: &jobspec.Plugin{Type: "greeting", Signer: p.signer, InstallDir: true, State: true, Config: config}},
		State:    state(t, map[string]any{"id": "ins_1", "name": "acme", "inputs": map[string]any{"token": secretOfTest}}),
	})
	copyTree(t, p.dir, filepath.Join(j.path, "in/artifact"))
	return j
}

type pluginWorld struct {
	t       *testing.T
	plugged *plugged
	dir     string
	state   plugin.State
	apply   string // the job of the last apply, of which the state is not taken yet
}

// take does what the agent does when the engine of an apply is over.
func (w *pluginWorld) take() error {
	if w.apply == "" {
		return nil
	}
	left, err := plugin.ReadState(os.DirFS(filepath.Join(w.apply, "work/plugin", plugin.StateDir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w.state, w.apply = left, ""
	return err
}

// Job implements World.
func (w *pluginWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	wish := wishes[o.Config]
	config := map[string]any{"text": wish[0] + " {{ .nuon.name }}", "place": wish[1], "token": "{{ .nuon.inputs.token }}"}
	if o.Lacks == conformance.LacksCredential {
		delete(config, "token")
	}
	j := w.plugged.job(w.t, o.Operation, config)
	j.env["BERTH_INSTALL_DIR"] = w.dir
	if err := errors.Join(w.take(), w.state.Write(filepath.Join(j.path, "in/state"))); err != nil {
		return j.spec, nil, err
	}
	if o.Operation == jobspec.OperationApply {
		w.apply = dir
	}
	return given(j, dir)
}

// Look implements World.
func (w *pluginWorld) Look(context.Context) (string, error) {
	if err := w.take(); err != nil {
		return "", err
	}
	text := ""
	for name, raw := range w.state {
		text += fmt.Sprintf("state %s %q\n", name, raw)
	}
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		text += fmt.Sprintf("%s %q\n", strings.TrimPrefix(path, w.dir), raw)
		return err
	})
	return text, err
}

// Drift implements World.
func (w *pluginWorld) Drift(context.Context) error {
	return os.WriteFile(filepath.Join(w.dir, "hall", "demo.txt"), []byte("graffiti"), 0o600)
}

// Killed implements World.
func (*pluginWorld) Killed() error { return nil }
