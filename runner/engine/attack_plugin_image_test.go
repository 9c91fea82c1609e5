package engine_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

// imaged makes of a plugin one whose script is in an image, with a shell.
func (p *plugged) imaged(t *testing.T, script string, more ...imagetest.Entry) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(p.dir, plugin.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	text := string(manifest)
	if text = strings.Replace(text, `"executables": { "any": "greeting.sh" }`, `"image": "image"`, 1); text == string(manifest) {
		t.Fatalf("the plugin's executables are not where this test looks for them: %s", text)
	}
	p.write(t, plugin.ManifestFile, text)
	shell := imagetest.Programs(t, "sh", "cat", "ln", "mkdir", "mkfifo", "rm", "sleep", "touch", "yes")
	imagetest.Layout(t, filepath.Join(p.dir, "image"), ocispec.ImageConfig{Entrypoint: []string{"/greeting.sh"}},
		shell, append([]imagetest.Entry{imagetest.File("greeting.sh", script)}, more...))
	p.sign(t)
}

// What a plugin may not do counts for one that is an image, too: it costs its own job.
func TestAttackPluginImageBreaksTheContract(t *testing.T) {
	t.Parallel()
	prefix := withoutNetwork(t)
	for _, tc := range []struct {
		name, script string
		want         string // in the error; "" when it succeeds
	}{
		{"it does well", planWell + succeed, ""},
		{"it cannot be started", "exit 125", "left no result.json"},
		{"it never ends", "sleep 1000", "took longer than the"},
		{"it floods the log", "yes", "bytes to its log"},
		{"it speaks for another job", planWell + `echo '{"outcome":"succeeded","job_id":"job_2"}' > out/result.json`, "its result is of job \"job_2\""},
		{"it pins a link to what is not its own", planWell + "ln -s ../../../../job.json out/pinned/z\n" + succeed, "is no file"},
		{"its plan is a pipe", planWell + "rm out/plan.canonical.json; mkfifo out/plan.canonical.json\n" + succeed, "is not a file"},
		{"it writes to its image", planWell + "echo x > /greeting.sh && " + succeed, "left no result.json"},
		{"it reads what its engine is given", planWell + "cat ../../in/pinned/x ../../job.json > out/outputs.json && " + succeed, "left no result.json"},
		{"it reads the machine's files", planWell + "cat /etc/hostname /etc/passwd > out/outputs.json && " + succeed, "left no result.json"},
		{"it has a shell of the machine", planWell + "[ -e /usr/bin/env ] && " + succeed, "left no result.json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := plug(t)
			p.imaged(t, "#!/bin/sh\ncd \"$2\"\n"+tc.script+"\n")
			j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": secretOfTest})
			j.prefix, j.spec.TimeoutSeconds = prefix, 20
			if strings.Contains(tc.want, "longer than") {
				j.spec.TimeoutSeconds = 2
			}
			r := j.run(t)
			if tc.want == "" {
				if r.Outcome != jobspec.OutcomeSucceeded {
					t.Errorf("%s: %s", r.Outcome, r.Error)
				}
				return
			}
			if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.want) || len(r.Outputs) > 0 {
				t.Errorf("%s: %s, want it to fail because of %q", r.Outcome, r.Error, tc.want)
			}
		})
	}
}

// An image that is not as it was signed, or that reaches out of itself, does not run.
func TestAttackPluginImageIsNotAdmitted(t *testing.T) {
	t.Parallel()
	prefix := withoutNetwork(t)
	const ran = "#!/bin/sh\ntouch \"$BERTH_INSTALL_DIR/ran\"\n"
	for _, tc := range []struct {
		name   string
		more   []imagetest.Entry
		change func(t *testing.T, dir string)
		want   string
	}{
		{"another image at the same place", nil, func(t *testing.T, dir string) {
			imagetest.Layout(t, dir, ocispec.ImageConfig{Entrypoint: []string{"/greeting.sh"}}, []imagetest.Entry{imagetest.File("greeting.sh", ran)})
		}, "was not signed"},
		{"a layer more, not signed", nil, func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "blobs", "sha256", strings.Repeat("0", 64)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "was not signed"},
		{"a layer through a symlink", []imagetest.Entry{imagetest.Link("a", "/tmp"), imagetest.File("a/x", "x")}, nil, "unsafe archive"},
		{"a layer that climbs", []imagetest.Entry{imagetest.File("../../out/result.json", `{"outcome":"succeeded"}`)}, nil, "unsafe archive"},
		{"a device", []imagetest.Entry{{Header: tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}}}, nil, "unsafe archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := plug(t)
			p.imaged(t, ran, tc.more...)
			j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": secretOfTest})
			j.prefix = prefix
			if tc.change != nil {
				tc.change(t, filepath.Join(j.path, "in/artifact/image"))
			}
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, tc.want) {
				t.Errorf("%s: %s, want it refused because of %q", r.Outcome, r.Error, tc.want)
			}
			if _, err := os.Stat(filepath.Join(j.env["BERTH_INSTALL_DIR"], "ran")); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// Where the kernel gives no user namespace, an image is refused, and says why.
func TestPluginImageWithoutNamespaces(t *testing.T) {
	t.Parallel()
	prefix := withoutNetwork(t)
	p := plug(t)
	p.imaged(t, "#!/bin/sh\n")
	j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": secretOfTest})
	j.prefix = append(append([]string{}, prefix...), "unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`, "sh")
	if r := j.run(t); r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, "gives no user namespace") || r.Remedy == "" {
		t.Errorf("%s: %s (%s)", r.Outcome, r.Error, r.Remedy)
	}
}
