package buildkit_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
)

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings buildkit.Settings
		want     []string // what each line of the error says, in this order
	}{
		{"none", buildkit.Settings{}, nil},
		{"one for each org", buildkit.Settings{Address: "tcp://bk-{org}.builds:1234", TLS: "/tls", Network: "none"}, nil},
		{"one for one org", buildkit.Settings{Address: "unix:///run/bk.sock", Org: "org_1"}, nil},
		{"one for all orgs", buildkit.Settings{Address: "unix:///run/bk.sock"}, []string{"two orgs on one daemon would share its cache"}},
		{"in clear over a network", buildkit.Settings{Address: "tcp://bk-{org}:1234"}, []string{"over a network BuildKit needs TLS"}},
		{"in clear on this machine", buildkit.Settings{Address: "tcp://127.0.0.1:1234", Org: "org_1"}, nil},
		{"no port", buildkit.Settings{Address: "tcp://bk-{org}", TLS: "/tls"}, []string{"want unix:///path or tcp://host:port"}},
		{"another scheme", buildkit.Settings{Address: "docker-container://x-{org}"}, []string{"want unix:///path or tcp://host:port"}},
		{"credentials in the address", buildkit.Settings{Address: "tcp://u:p@bk-{org}:1", TLS: "/tls"}, []string{"want unix:///path or tcp://host:port"}},
		{"limits that no step starts under", buildkit.Settings{StepMemory: 1 << 20, StepPIDs: -1}, []string{"build_memory_bytes is 1048576", "build_pids is -1"}},
		{"an unknown network", buildkit.Settings{Network: "host"}, []string{`build_network is "host"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if err := tt.settings.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.Contains(got[i], tt.want[i]) {
					t.Errorf("got %q, want %q", got[i], tt.want[i])
				}
			}
		})
	}
}

// secretsOf writes a directory of secrets and returns a service that has it, and a
// BuildKit for org_1 that is never asked.
func secretsOf(t *testing.T, files map[string]string) *buildkit.Service {
	t.Helper()
	dir, programs := t.TempDir(), t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text, 0o600)
	}
	write(t, filepath.Join(programs, "buildctl"), "#!/bin/sh\n", 0o755)
	write(t, filepath.Join(dir, "org_1/secrets/open"), "x", 0o644)
	return buildkit.New(buildkit.Config{
		Settings: buildkit.Settings{Address: "unix:///run/none.sock", Org: "org_1", Secrets: dir},
		Dir:      t.TempDir(), Libexec: programs, Log: slog.New(slog.DiscardHandler),
	})
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

const dockerLogin = `{"auths":{"registry.internal":{"username":"ci","password":"hunter22","auth":"Y2k6aHVudGVyMjI="}},
	"credHelpers":{"other.internal":"evil"},"credsStore":"evil","proxies":{}}`

// A build gets the secrets that it names, of its own org, and of Docker's
// configuration only what starts no program.
func TestGive(t *testing.T) {
	t.Parallel()
	s := secretsOf(t, map[string]string{"org_1/secrets/npm": "npm-token\n", "org_1/secrets/other": "not asked for", "org_1/config.json": dockerLogin})
	in := t.TempDir()
	env, err := s.Give(t.Context(), "org_1", in, &jobspec.Docker{Secrets: []string{"npm"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(env, "BERTH_BUILDKIT_ADDR=unix:///run/none.sock") {
		t.Errorf("environment %q", env)
	}
	given := map[string]string{}
	err = fs.WalkDir(os.DirFS(in), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(in, name))
		given[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"secrets/npm": "npm-token\n",
		"config.json": `{"auths":{"registry.internal":{"auth":"Y2k6aHVudGVyMjI=","password":"hunter22","username":"ci"}}}`,
	}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	hidden := buildkit.Hidden(in)
	for _, secret := range []string{"npm-token", "hunter22", "Y2k6aHVudGVyMjI="} {
		if !slices.Contains(hidden, secret) {
			t.Errorf("%q would be shown in a log: hidden is %q", secret, hidden)
		}
		if strings.Contains(strings.Join(env, " "), secret) {
			t.Errorf("%q is in the environment", secret)
		}
	}
}

func TestGiveRefuses(t *testing.T) {
	t.Parallel()
	s := secretsOf(t, map[string]string{"org_1/secrets/npm": "a", "org_2/secrets/key": "of org_2", "org_1/config.json": "{}", "org_3/config.json": `{"auths": "secret-in-a-bad-place"}`})
	for _, tt := range []struct {
		name, org, secret string
		want              string
	}{
		{"a secret that is not there", "org_1", "absent", `no build secret "absent" for this org`},
		{"another org's", "org_1", "../../org_2/secrets/key", "cannot be the name of a build secret"},
		{"another org's by its name", "org_1", "key", `no build secret "key" for this org`},
		{"the credentials of base images", "org_1", "../config.json", "cannot be the name of a build secret"},
		{"one that everybody may read", "org_1", "open", "may be read by everybody"},
		{"a BuildKit of another org", "org_2", "", "the BuildKit of this builder is another org's"},
		{"credentials that are none", "org_3", "", "not what Docker's config.json is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			docker := &jobspec.Docker{}
			if tt.secret != "" {
				docker.Secrets = []string{tt.secret}
			}
			_, err := s.Give(t.Context(), tt.org, t.TempDir(), docker)
			refusal, ok := errors.AsType[*buildkit.Refusal](err)
			if !ok || !strings.Contains(refusal.Message, tt.want) || strings.Contains(refusal.Message, "secret-in-a-bad-place") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A machine without BuildKit says what to do, and starts nothing.
func TestGiveWithoutBuildKit(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	config := buildkit.Config{Dir: t.TempDir(), Libexec: programs, Log: slog.New(slog.DiscardHandler)}
	for _, want := range []string{"there is no buildctl", "there is no buildkitd", "there is no runc"} {
		_, err := buildkit.New(config).Give(t.Context(), "org_1", t.TempDir(), &jobspec.Docker{})
		refusal, ok := errors.AsType[*buildkit.Refusal](err)
		if !ok || !strings.Contains(refusal.Message, want) || !strings.Contains(refusal.Remedy, "BERTH_BUILDKIT_ADDR") {
			t.Fatalf("got %v, want %q", err, want)
		}
		write(t, filepath.Join(programs, want[len("there is no "):]), "", 0o755)
	}
}

// Only the engine of a build of an image sees the socket and the client.
func TestShown(t *testing.T) {
	t.Parallel()
	own := buildkit.New(buildkit.Config{Dir: t.TempDir()})
	elsewhere := buildkit.New(buildkit.Config{Dir: t.TempDir(), Settings: buildkit.Settings{Address: "tcp://{org}:1"}})
	for kind := range jobspec.Kinds {
		want := 0
		if kind == jobspec.KindDockerBuild {
			want = 2
		}
		if got := own.Shown(kind); len(got) != want {
			t.Errorf("the engine of a %s sees %q", kind, got)
		}
	}
	if got := elsewhere.Shown(jobspec.KindDockerBuild); len(got) != 1 || filepath.Base(got[0]) != "client" {
		t.Errorf("with a BuildKit elsewhere an engine sees %q", got)
	}
	if got := (*buildkit.Service)(nil).Shown(jobspec.KindDockerBuild); got != nil {
		t.Errorf("on a runner of an install an engine sees %q", got)
	}
}
