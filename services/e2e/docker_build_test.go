package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// buildKit is the folder with buildkitd and buildctl; without it the test skips,
// unless BERTH_BUILDKIT names one, as in CI.
func buildKit(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_BUILDKIT")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../.bin/tools"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "buildkitd")); err != nil {
			t.Skip("buildkit: it is not built here; dev/scripts/buildkit.sh build does it, in minutes")
		}
	}
	for _, program := range []string{"runc", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("buildkit: there is no %s; dev/scripts/need.sh buildkit installs it", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("buildkit: without root it needs ranges of users in /etc/subuid, which test users have not")
	}
	return dir
}

// TestDockerBuild syncs an app with a Dockerfile: a daemon of the Build Runner's own
// builds the image, the release has it, the next sync of the same builds nothing,
// and a secret of the vendor that a step prints is not in the build's log.
func TestDockerBuild(t *testing.T) {
	t.Parallel()
	tools := buildKit(t)
	secrets := t.TempDir()
	const secret = "the-vendors-own-token-4711"
	s := start(t, "PATH="+tools+":"+os.Getenv("PATH"), "BERTH_BUILD_SECRETS="+secrets, "BERTH_BUILD_NETWORK=none")
	in := s.probe("acme")
	in.nameRegistry()
	var me ctlapi.Me
	s.get("/me", &me)
	put(t, filepath.Join(secrets, me.Org.ID, "secrets", "token"), secret)
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(in.app, "src/web/busybox"), string(program))
	put(t, filepath.Join(in.app, "src/web/Dockerfile"), `FROM scratch AS build
COPY --chmod=755 busybox /bin/
SHELL ["/bin/busybox", "sh", "-euc"]
ARG VERSION
RUN --mount=type=secret,id=token echo "version $VERSION" > /version; echo "the token is $(/bin/busybox cat /run/secrets/token)"
FROM scratch
COPY --from=build /version /version
`)
	put(t, filepath.Join(in.app, "components/web.toml"), `name       = "web"
type       = "docker_build"
dockerfile = "Dockerfile"
secrets    = ["token"]

[args]
VERSION = "1"

[berth]
local_source = "src/web"
`)
	in.addPolicy("made-here", "container_image", `package nuon

deny contains "it is not signed" if not input.metadata.signed

deny contains "nobody says what is in it" if not input.metadata.sbom.spdxVersion

deny contains "nobody says where it comes from" if count([s | some s in input.metadata.attestations; s.predicateType == "https://slsa.dev/provenance/v1"]) == 0
`)
	in.change("{{ .nuon.components.web.outputs.image.ref }}")
	item := func(r ctlapi.Release) ctlapi.ReleaseItem {
		for _, i := range r.Items {
			if i.Component == "web" {
				return i
			}
		}
		t.Fatalf("release %d has no web", r.Number)
		return ctlapi.ReleaseItem{}
	}
	first := item(s.sync("probe", in.app))
	var build ctlapi.Build
	s.get("/builds/"+first.BuildID, &build)
	if build.Provenance == nil || !strings.Contains(string(*build.Provenance), `"buildkit"`) || build.ReusedFrom != nil {
		t.Errorf("build %+v", build)
	}
	passes := func(where string, count ctlapi.PolicyCounts, answer ctlapi.PolicyAnswer) {
		t.Helper()
		if answer != ctlapi.PolicyAnswerAllow || count.Pass == 0 {
			t.Errorf("the policy for images says %s %s: %+v", answer, where, count)
		}
	}
	if len(build.Policies) != 1 {
		t.Fatalf("policies that looked at the build: %+v", build.Policies)
	}
	passes("when it is built", build.Policies[0].Counts, build.Policies[0].Answer)
	log := s.must("logs", first.BuildID)
	for _, want := range []string{"| the token is ", "pushed ", "done in "} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, secret) {
		t.Errorf("the secret is in the log:\n%s", log)
	}

	// What is deployed is exactly that image.
	in.finished(in.deploy(true).ID, 2*time.Minute)
	var reports ctlapi.PolicyReportPage
	s.get("/policy-reports?policy=made-here", &reports)
	if len(reports.Items) == 0 {
		t.Error("no policy looked at the planned image")
	}
	for _, r := range reports.Items {
		passes("when it is planned", r.Counts, r.Answer)
	}
	ref := registry + "/web@" + build.Artifact.Digest
	if effects := strings.Join(in.effects(), "\n"); !strings.Contains(effects, "end one "+ref) {
		t.Errorf("component one did not get %s:\n%s", ref, effects)
	}

	// The same again is no build.
	put(t, filepath.Join(in.app, "install.md"), "# Another release\n")
	s.get("/builds/"+item(s.sync("probe", in.app)).BuildID, &build)
	if build.ReusedFrom == nil && build.ID != first.BuildID {
		t.Errorf("the same was built again: %+v", build)
	}

	// Something else, by a Build Runner that has forgotten what it built: it takes over
	// what the first build has left in the registry.
	for _, pid := range s.processes("keep.json") {
		s.signal(pid, syscall.SIGKILL)
	}
	forgotten, _ := filepath.Glob(filepath.Join(s.dir, "builder/runners/*/buildkit/state/root"))
	if len(forgotten) != 1 {
		t.Fatalf("caches of daemons: %q", forgotten)
	}
	s.eventually(30*time.Second, "the daemon is gone", func() error { return os.RemoveAll(forgotten[0]) })
	edit(t, filepath.Join(in.app, "src/web/Dockerfile"), "COPY --from=build /version /version\n", "COPY --from=build /version /version\nCOPY Dockerfile /\n")
	log = s.must("logs", item(s.sync("probe", in.app)).BuildID)
	for _, want := range []string{"cache of earlier builds: ", ": cached", "kept the cache of this build"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "| the token is ") {
		t.Errorf("the step was run again:\n%s", log)
	}
}

// registry is what kubelets would call the install's own one: nobody asks it here.
const registry = "127.0.0.1:30999"

// nameRegistry tells the install's runner what kubelets would call its registry,
// which berth up does on a machine with a cluster.
func (in *install) nameRegistry() {
	in.t.Helper()
	file := filepath.Join(in.dir, "runners", in.runner, "config.json")
	config := map[string]any{}
	if raw, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(raw, &config); err != nil {
			in.t.Fatal(err)
		}
	}
	config["registry_address"] = registry
	raw, err := json.Marshal(config)
	if err != nil {
		in.t.Fatal(err)
	}
	put(in.t, file, string(raw))
	for _, pid := range in.processes("berth-runner --data " + filepath.Dir(file)) {
		in.signal(pid, syscall.SIGTERM)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
