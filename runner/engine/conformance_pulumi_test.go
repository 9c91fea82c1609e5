package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// pulumiWorld is a program of dev/pulumi, the files that it keeps, and its state.
type pulumiWorld struct {
	t       *testing.T
	tools   string
	backend *backend
	files   string
}

// pulumiTools are those of dev/scripts/pulumi.sh.
func pulumiTools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_PULUMI_TOOLS")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../.bin/tools/pulumi"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		t.Skip("there is no pulumi to test with: dev/scripts/pulumi.sh build")
	}
	return dir
}

func newPulumiWorld(t *testing.T) *pulumiWorld {
	t.Helper()
	return &pulumiWorld{t: t, tools: pulumiTools(t), backend: newBackend(t), files: t.TempDir()}
}

// Job implements World.
func (w *pulumiWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	wish := wishes[o.Config]
	files, err := json.Marshal(map[string]map[string]string{
		"greeting": {"Path": filepath.Join(w.files, wish[1]), "Text": wish[0]}, "secret": {"Path": filepath.Join(w.files, "token")},
	})
	if err != nil {
		return jobspec.Spec{}, nil, err
	}
	j := newJob(w.t, jobspec.Spec{
		Kind: jobspec.KindPulumi, Operation: o.Operation, Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/web", Digest: "sha256:" + strings.Repeat("0", 64)},
		Work:     jobspec.Work{Pulumi: &jobspec.Pulumi{Config: map[string]string{"shop:files": string(files), "secret": secretOfTest}}},
		State:    json.RawMessage(`{}`),
	})
	if o.Operation == jobspec.OperationApply {
		j.spec.State = nil
	}
	for name, value := range w.backend.env() {
		j.env[name] = value
	}
	j.env["BERTH_PULUMI"] = filepath.Join(w.tools, "pulumi")
	switch o.Lacks {
	case conformance.LacksCredential:
		j.env["TF_HTTP_PASSWORD"] = "not the password"
	case conformance.LacksTool:
		withoutTools(w.t, j)
		delete(j.env, "BERTH_PULUMI")
	}
	j.write(w.t, "in/artifact/Pulumi.yaml", "name: shop\nruntime: {name: go, options: {binary: program}}\n")
	j.write(w.t, "in/artifact/program", "#!/bin/sh\nexec '"+filepath.Join(w.tools, "program")+"'\n")
	if err := os.Chmod(filepath.Join(j.path, "in/artifact/program"), 0o700); err != nil {
		return j.spec, nil, err
	}
	return given(j, dir)
}

// Look implements World.
func (w *pulumiWorld) Look(context.Context) (string, error) {
	entries, err := os.ReadDir(w.files)
	text := ""
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(w.files, e.Name()))
		if err != nil {
			return "", err
		}
		text += e.Name() + " " + string(raw) + "\n"
	}
	return text, err
}

// Drift implements World.
func (w *pulumiWorld) Drift(context.Context) error {
	return os.WriteFile(filepath.Join(w.files, "hall"), []byte("graffiti"), 0o600)
}

// Killed implements World: the next grant frees the lock.
func (w *pulumiWorld) Killed() error {
	w.backend.set(func(b *backend) { b.lock = nil })
	return nil
}
