package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

// Settings for Terraform's mirrors and cache reach the engine that applies a
// module: variables, and the files that they name, which it may only read.
func TestMirrorsReachTheEngine(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		dir, err := os.MkdirTemp("", "berth-mirrors-*") // hidden from engines, like all of /tmp
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		mirror, cache, config := filepath.Join(dir, "mirror"), filepath.Join(dir, "cache"), filepath.Join(dir, "terraformrc")
		for path, text := range map[string]string{
			config: "provider_installation {\n  filesystem_mirror {\n    path = \"" + mirror + "\"\n  }\n}\n", mirror + "/package": "x", cache + "/package": "x", dir + "/secret": "x",
		} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		begin := func(r *runner) {
			user := r.user()
			if f == byUsers {
				user = nil
			} else {
				r.yield()
			}
			cmd := r.process(processConfig{}, user)
			cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+config, "TF_PLUGIN_CACHE_DIR="+cache)
			r.run(cmd)
		}
		c := newChange(t, begin, "env", "read "+config, "read "+mirror+"/package", "read "+cache+"/package", "read "+dir+"/secret", "touch "+cache+"/own")
		job := c.order(asItIs)
		if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, cache+"/own") {
			t.Errorf("result = %+v, want the engine unable to write to the cache", result)
		}
		lines := c.plane.log(t, c.plane.streamOf(job))
		for _, name := range []string{"TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR"} {
			if !slices.Contains(lines, "env "+name) {
				t.Errorf("the engine has no %s", name)
			}
		}
		var reads []string
		for _, line := range lines {
			if strings.HasPrefix(line, "readable") {
				reads = append(reads, strings.TrimPrefix(line, "readable "))
			}
		}
		if got := strings.Join(reads, " "); got != "true true true false" {
			t.Errorf("configuration, mirror, cache and what lies next to them can be read: %s", got)
		}
	})
}

// A mirror of providers that a setting names reaches the engine: Terraform's
// configuration for it, which nobody but the agent can write, and the directory.
func TestProviderMirror(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		r := newRunner(t, runnerapi.RunnerKindInstall)
		mirror := filepath.Join(filepath.Dir(r.binary), "mirror")
		toolchaintest.Write(t, filepath.Join(mirror, "package"), []byte("x"), 0o644)
		if err := datadir.WriteJSON(r.dir.Config(), map[string]any{"provider_mirror": mirror}); err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(r.dir.Tools(), "cli", "terraform.rc")
		c := newChangeOn(t, r, f.begin, func(*jobspec.Spec) {}, "env", "read "+config, "read "+mirror+"/package", "touch "+config)
		job := c.order(asItIs)
		if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, config) {
			t.Errorf("result = %+v, want the engine unable to write to the configuration", result)
		}
		lines := c.plane.log(t, c.plane.streamOf(job))
		for _, want := range []string{"env TF_CLI_CONFIG_FILE", "readable true"} {
			if !slices.Contains(lines, want) {
				t.Errorf("the log has no %q", want)
			}
		}
		if slices.Contains(lines, "readable false") {
			t.Error("the configuration or the mirror cannot be read")
		}
		text, err := os.ReadFile(config)
		if want := "provider_installation {\n  filesystem_mirror {\n    path = \"" + mirror + "\"\n  }\n}\n"; err != nil || string(text) != want {
			t.Errorf("the configuration is %q, %v; want %q", text, err, want)
		}
	})
}
