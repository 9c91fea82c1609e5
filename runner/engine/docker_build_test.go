package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/buildkit/buildkittest"
)

// busybox is the base of all images here: nothing is pulled.
func busybox(t *testing.T) []byte {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("buildkit: there is no busybox to make images of; dev/scripts/need.sh buildkit installs it")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// shell begins a stage in which RUN works.
const shell = "FROM scratch AS base\nCOPY busybox /bin/\nSHELL [\"/bin/busybox\", \"sh\", \"-euc\"]\n"

// foreign is the beginning of a program for s390x, which no machine here runs.
const foreign = "\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16\x00\x00\x00\x01"

// A kitchen is a Build Runner's BuildKit with its secrets.
type kitchen struct {
	service *buildkit.Service
	secrets string
}

func newKitchen(t *testing.T, settings buildkit.Settings) kitchen {
	t.Helper()
	buildkittest.Programs(t)
	k := kitchen{secrets: t.TempDir()}
	settings.Secrets = k.secrets
	k.service = buildkittest.New(t, settings).Service(t)
	return k
}

// job is a build of files, as the agent makes it.
func (k kitchen) job(t *testing.T, docker jobspec.Docker, files map[string]string) *jobDir {
	t.Helper()
	return k.jobOf(t, "org_1", docker, files)
}

// jobOf is job with the secrets and credentials of an org.
func (k kitchen) jobOf(t *testing.T, org string, docker jobspec.Docker, files map[string]string) *jobDir {
	t.Helper()
	if docker.Dockerfile == "" {
		docker.Dockerfile = "Dockerfile"
	}
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindDockerBuild, Operation: jobspec.OperationBuild, BuildID: "bld_1", File: "components/web.toml",
		Source: &jobspec.Source{
			Kind: "archive", Archive: &jobspec.Artifact{Repository: "org_1/sources", Digest: "sha256:0"}, Directory: "src/web",
			Push: "org_1/app/web", Docker: &docker,
		},
	})
	files = maps.Clone(files)
	if files == nil {
		files = map[string]string{}
	}
	files["busybox"] = string(busybox(t))
	for name, contents := range files {
		j.write(t, "in/source/"+name, contents)
		if strings.HasPrefix(contents, "\x7fELF") {
			if err := os.Chmod(filepath.Join(j.path, "in/source", name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	env, err := k.service.Give(t.Context(), org, filepath.Join(j.path, "in/build"), &docker)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		j.env[name] = value
	}
	return j
}

// image is what a build left.
type image struct {
	digest string
	// config of the image, or of its first platform.
	config ocispec.Image
	// files of all layers, by name.
	files map[string]string
	// refers are the statements about it, by predicate.
	refers map[string][]map[string]any
	index  ocispec.Index
}

func (j *jobDir) image(t *testing.T) image {
	t.Helper()
	made := image{files: map[string]string{}, refers: map[string][]map[string]any{}}
	j.readJSON(t, "out/image/index.json", &made.index)
	made.digest = made.index.Manifests[0].Digest.String()
	top := made.index.Manifests[0]
	if top.MediaType == ocispec.MediaTypeImageIndex {
		var index ocispec.Index
		j.blob(t, top, &index)
		top = index.Manifests[0]
	}
	var manifest ocispec.Manifest
	j.blob(t, top, &manifest)
	j.blob(t, manifest.Config, &made.config)
	for _, layer := range manifest.Layers {
		r, err := gzip.NewReader(strings.NewReader(j.read(t, blobName(layer))))
		if err != nil {
			t.Fatal(err)
		}
		untar(t, r, made.files)
	}
	for _, d := range made.index.Manifests[1:] {
		var refer ocispec.Manifest
		j.blob(t, d, &refer)
		if refer.Subject == nil {
			t.Fatalf("%s refers to nothing", d.Digest)
		}
		var statement map[string]any
		j.blob(t, refer.Layers[0], &statement)
		predicate := fmt.Sprint(statement["predicateType"])
		made.refers[predicate] = append(made.refers[predicate], statement)
	}
	return made
}

func untar(t *testing.T, r io.Reader, files map[string]string) {
	t.Helper()
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(raw)
	}
}

func sha256Of(text string) string { return digest.FromString(text).Encoded() }

func blobName(d ocispec.Descriptor) string { return "out/image/blobs/sha256/" + d.Digest.Encoded() }

func (j *jobDir) blob(t *testing.T, d ocispec.Descriptor, v any) {
	t.Helper()
	j.readJSON(t, blobName(d), v)
}

// An image is built of several stages, with arguments and a secret; the secret is in
// nothing that the build leaves.
func TestDockerBuild(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, buildkit.Settings{})
	const secret = "s3cr3t-of-the-vendor"
	k.write(t, "org_1/secrets/token", secret)
	j := k.job(t, jobspec.Docker{
		Dockerfile: "docker/web.Dockerfile", Target: "release", Secrets: []string{"token"},
		Args: map[string]string{"GREETING": "hello"}, EnvVars: map[string]string{"GREETING": "overruled", "WHO": "world"},
	}, map[string]string{
		"docker/web.Dockerfile": "# syntax=docker/dockerfile:1\n" + shell + `FROM base AS build
ARG GREETING
ARG WHO
COPY . /src
RUN echo "$GREETING $WHO" > /out.txt; echo building aloud
RUN --mount=type=secret,id=token /bin/busybox cat /run/secrets/token | /bin/busybox sha256sum > /proof.txt
RUN /bin/busybox test ! -e /src/ignored.txt
FROM scratch AS release
COPY --from=build /out.txt /proof.txt /
COPY page.html /www/
ENV MODE=live
ENTRYPOINT ["/none"]
FROM scratch
COPY --from=build /absent /
`,
		".dockerignore": "ignored.txt\n", "ignored.txt": "x", "page.html": "<h1>hi</h1>",
	})
	r := j.must(t)
	made := j.image(t)
	want := map[string]string{"out.txt": "hello world\n", "www/page.html": "<h1>hi</h1>"}
	proof := made.files["proof.txt"]
	delete(made.files, "proof.txt")
	if diff := cmp.Diff(want, made.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(proof, sha256Of(secret)) {
		t.Errorf("the step got another secret: %q", proof)
	}
	if len(made.config.Config.Env) == 0 || made.config.Config.Entrypoint[0] != "/none" {
		t.Errorf("config %+v", made.config.Config)
	}
	for predicate, n := range map[string]int{"https://slsa.dev/provenance/v1": 1, "https://spdx.dev/Document": 1} {
		if len(made.refers[predicate]) != n {
			t.Errorf("%d statements of type %s, want %d", len(made.refers[predicate]), predicate, n)
		}
	}
	if r.Tool == nil || r.Tool.Name != "buildkit" || r.Tool.Version != "v0.33.1" {
		t.Errorf("tool %+v", r.Tool)
	}
	log := j.log(t)
	for _, part := range []string{"| building aloud", "the syntax line docker/dockerfile:1", "done in ", "built " + made.digest} {
		wantContains(t, "log", log, part)
	}
	noSecret(t, filepath.Join(j.path, "out"), secret)
	if strings.Contains(log, secret) {
		t.Error("the secret is in the log")
	}

	// The image on its way to an install is one that somebody else's would be.
	plan := newJob(t, jobspec.Spec{
		Kind: jobspec.KindDockerBuild, Operation: jobspec.OperationPlan, Work: jobspec.Work{DockerBuild: &jobspec.DockerBuild{}},
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/web", Digest: made.digest},
	})
	plan.env["BERTH_REGISTRY"] = "registry.internal:5000"
	plan.must(t)
	var outputs jobspec.Outputs
	plan.readJSON(t, "out/outputs.json", &outputs)
	var out map[string]string
	if err := json.Unmarshal(outputs["image"].Value, &out); err != nil {
		t.Fatal(err)
	}
	repository := "registry.internal:5000/web"
	wantOut := map[string]string{"repository": repository, "tag": made.digest[7:19], "digest": made.digest, "ref": repository + "@" + made.digest}
	if diff := cmp.Diff(wantOut, out); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

// noSecret looks into every file, and into what is packed in it.
func noSecret(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if r, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
			raw, _ = io.ReadAll(r)
		}
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the secret is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Two builds with empty caches of two copies of a source give the same image.
func TestDockerBuildIsReproducible(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Dockerfile": shell + "COPY a /a\nRUN echo made > /b; /bin/busybox mkdir /c\n", "a": "a"}
	var digests []string
	for i := range 2 {
		j := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{}, files)
		at := time.Date(2020+i, 1, 1, 0, 0, 0, 0, time.UTC)
		name := filepath.Join(j.path, "in/source/a")
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, []fs.FileMode{0o600, 0o664}[i]); err != nil {
			t.Fatal(err)
		}
		j.must(t)
		digests = append(digests, j.image(t).digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds of the same made %q", digests)
	}
}

// What an app may not do, and what it can do about that.
func TestDockerBuildRefuses(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, buildkit.Settings{})
	for _, tt := range []struct {
		name   string
		docker jobspec.Docker
		files  map[string]string
		links  map[string]string
		want   string
		remedy string
	}{
		{name: "no Dockerfile", want: `there is no file "Dockerfile"`, remedy: "correct dockerfile in components/web.toml"},
		{name: "a Dockerfile above the source", docker: jobspec.Docker{Dockerfile: "../../job.json"}, want: `there is no file "job.json"`, remedy: "correct dockerfile"},
		{name: "a Dockerfile that is a link out of it", links: map[string]string{"Dockerfile": "../../job.json"}, want: "it leads out of the source", remedy: "correct dockerfile"},
		{name: "a context that is a link out of it", docker: jobspec.Docker{Context: "web"}, files: map[string]string{"Dockerfile": "FROM scratch\n"}, links: map[string]string{"web": "../.."},
			want: "it leads out of the source", remedy: "correct context"},
		{name: "a file that is a link out of it", files: map[string]string{"Dockerfile": "FROM scratch\nCOPY . /\n"}, links: map[string]string{"job": "../../job.json"},
			want: "job is a symlink: it leads out of the source", remedy: "correct src/web"},
		{name: "a frontend of its own", files: map[string]string{"Dockerfile": "# Syntax = evil.internal/frontend:1\nFROM scratch\n"},
			want: "line 1: its syntax is that of the image evil.internal/frontend:1", remedy: "remove that line"},
		{name: "rights of the machine", files: map[string]string{"Dockerfile": shell + "RUN --security=insecure echo\n"}, want: "security.insecure", remedy: "gets rights of the machine"},
		{name: "the network of the machine", files: map[string]string{"Dockerfile": shell + "RUN --network=host echo\n"}, want: "network.host", remedy: "gets rights of the machine"},
		{name: "a step that fails", files: map[string]string{"Dockerfile": shell + "RUN echo so it ends; exit 7\n"}, want: "exit code: 7", remedy: "correct Dockerfile"},
		{name: "no Dockerfile's language", files: map[string]string{"Dockerfile": "FROM scratch\nCOPPY a b\n"}, want: "unknown instruction: COPPY", remedy: "correct Dockerfile"},
		{name: "a stage that is not there", docker: jobspec.Docker{Target: "none"}, files: map[string]string{"Dockerfile": shell}, want: `target stage "none" could not be found`, remedy: "correct Dockerfile"},
		{name: "a step that needs an emulator", docker: jobspec.Docker{Platforms: []string{"linux/s390x"}},
			files: map[string]string{"Dockerfile": strings.Replace(shell, "busybox /bin/", "foreign /bin/busybox", 1) + "RUN echo\n", "foreign": foreign}, want: "would need an emulator", remedy: "build that stage on the platform of the builder"},
		{name: "an image of nobody", files: map[string]string{"Dockerfile": "FROM 127.0.0.1:1/base:1\n"}, want: "127.0.0.1:1/base:1", remedy: "correct Dockerfile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := k.job(t, tt.docker, tt.files)
			for name, target := range tt.links {
				if err := os.Symlink(target, filepath.Join(j.path, "in/source", name)); err != nil {
					t.Fatal(err)
				}
			}
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeFailed {
				t.Errorf("outcome %s", r.Outcome)
			}
			wantContains(t, "error", r.Error, tt.want)
			wantContains(t, "remedy", r.Remedy, tt.remedy)
			t.Logf("%s; %s", r.Error, r.Remedy)
		})
	}
}

// A build that is stopped ends in the daemon too.
func TestDockerBuildStopped(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, buildkit.Settings{})
	mark := fmt.Sprintf("31%d", os.Getpid())
	j := k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": shell + "RUN echo it begins; /bin/busybox sleep " + mark + "\n"})
	cmd := j.start(t)
	wait(t, "the step begins", func() bool { return strings.Contains(j.log(t), "| it begins") && running(mark) })
	stop(t, cmd)
	r := j.finish(t, cmd)
	if r.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	wait(t, "the step ends", func() bool { return !running(mark) })

	// One whose engine is killed is forgotten by the daemon as well, and the same can
	// be built again.
	j = k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": shell + "RUN echo it begins; /bin/busybox sleep " + mark + "\n"})
	cmd = j.start(t)
	wait(t, "the step begins", func() bool { return strings.Contains(j.log(t), "| it begins") && running(mark) })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	wait(t, "the step of a killed engine ends", func() bool { return !running(mark) })
	k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": shell + "RUN echo again\n"}).must(t)
}

func wait(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// running looks for a process with an argument.
func running(arg string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		if strings.HasSuffix(string(raw), "sleep\x00"+arg+"\x00") {
			return true
		}
	}
	return false
}

// RUN steps without a network have none, whether the app or the operator says so.
func TestDockerBuildWithoutNetwork(t *testing.T) {
	t.Parallel()
	dockerfile := map[string]string{"Dockerfile": shell + "RUN /bin/busybox wc -l < /proc/net/route > /routes\nFROM scratch\nCOPY --from=base /routes /\n"}
	for name, of := range map[string]struct {
		settings buildkit.Settings
		docker   jobspec.Docker
		none     bool
	}{
		"as the app says":      {docker: jobspec.Docker{Network: jobspec.NetworkNone}, none: true},
		"as the operator says": {settings: buildkit.Settings{Network: buildkit.NetworkNone}, none: true},
		"by default":           {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newKitchen(t, of.settings).job(t, of.docker, dockerfile)
			j.must(t)
			routes := strings.TrimSpace(j.image(t).files["routes"])
			if none := routes == "0" || routes == "1"; none != of.none { // its first line is a heading
				t.Errorf("%q routes", routes)
			}
		})
	}
}

// Several platforms are one image, built without an emulator as long as no step
// runs there.
func TestDockerBuildForPlatforms(t *testing.T) {
	t.Parallel()
	j := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{Platforms: []string{"linux/amd64", "linux/arm64"}}, map[string]string{
		"Dockerfile": "FROM scratch\nARG TARGETARCH\nCOPY app-$TARGETARCH /app\n", "app-amd64": "a", "app-arm64": "b",
	})
	j.must(t)
	made := j.image(t)
	if n := len(made.refers["https://spdx.dev/Document"]); n != 2 || made.index.Manifests[0].MediaType != ocispec.MediaTypeImageIndex {
		t.Errorf("%d documents about %s", n, made.index.Manifests[0].MediaType)
	}
}

// A base image of a private registry is pulled with the org's credentials, and the
// provenance names it by digest.
func TestDockerBuildOnAPrivateBase(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, buildkit.Settings{})
	base := k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": "FROM scratch\nCOPY a /a\n", "a": "from the base"})
	base.must(t)
	made := base.image(t)
	host := made.serve(t, base)
	files := map[string]string{"Dockerfile": "FROM " + host + "/shop/base:1\nCOPY b /b\n", "b": "of the app"}

	r := k.job(t, jobspec.Docker{}, files).run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Remedy, "credentials of that registry") {
		t.Errorf("without credentials: %s: %s; %s", r.Outcome, r.Error, r.Remedy)
	}

	k.write(t, "org_1/config.json", loginTo(host))
	j := k.job(t, jobspec.Docker{}, files)
	j.must(t)
	got := j.image(t)
	if diff := cmp.Diff(map[string]string{"a": "from the base", "b": "of the app"}, got.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	provenance, err := json.Marshal(got.refers["https://slsa.dev/provenance/v1"])
	if err != nil || !strings.Contains(string(provenance), strings.TrimPrefix(made.digest, "sha256:")) {
		t.Errorf("the provenance does not name the base %s: %s %v", made.digest, provenance, err)
	}
	noSecret(t, filepath.Join(j.path, "out"), privatePassword)
	if strings.Contains(j.log(t), privatePassword) {
		t.Error("the password is in the log")
	}
}

// write gives the operator's builder a secret or a login.
func (k kitchen) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(k.secrets, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve offers an image that a job built as shop/base:1 of a private registry.
func (made image) serve(t *testing.T, j *jobDir) (host string) {
	t.Helper()
	server := httptest.NewServer(privateRegistry{dir: filepath.Join(j.path, "out/image"), digest: made.digest})
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// loginTo is what docker login writes for that registry.
func loginTo(host string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(privateUser+":"+privatePassword)))
}

// Who may pull from a private registry.
const privateUser, privatePassword = "puller", "the-registrys-own-password"

// privateRegistry is a registry with one image, shop/base:1, for one user.
type privateRegistry struct {
	dir, digest string
}

func (p privateRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != privateUser || password != privatePassword {
		w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name := path.Base(r.URL.Path)
	if name == "1" {
		name = p.digest
	}
	raw, err := os.ReadFile(filepath.Join(p.dir, "blobs/sha256", strings.TrimPrefix(name, "sha256:")))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if strings.Contains(r.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", name)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	_, _ = w.Write(raw)
}
