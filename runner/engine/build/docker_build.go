package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/build/buildkit"
	"github.com/berth-dev/berth/runner/engine/job"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 1 << 20

// DockerBuild has BuildKit build an image of the source. It leaves the image, its
// provenance and its list of packages in out/image.
func DockerBuild(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	docker := j.Spec.Source.Docker
	if docker == nil {
		return jobspec.Result{}, job.Refusef("run a newer builder", "the order does not say how to build an image")
	}
	began := time.Now().UTC()
	solve, err := prepareSolve(ctx, j, *docker)
	if err != nil {
		return jobspec.Result{}, err
	}
	version, err := solve.Version(ctx)
	if err != nil {
		return jobspec.Result{}, explainSolve(ctx, j, *docker, err)
	}
	result := jobspec.Result{Tool: &jobspec.Tool{Name: "buildkit", Version: version}}
	j.Logf("building with BuildKit %s", version)
	steps := &buildkit.Steps{
		Log: func(line string) { j.Logf("%s", line) },
		Now: func(step string, since time.Time) {
			j.Show(jobspec.Progress{What: step, Doing: "building", Since: since})
		},
	}
	defer j.Show(jobspec.Progress{})
	err = solve.Run(ctx, steps)
	if err != nil && solve.CacheFrom != "" && ctx.Err() == nil && !buildkit.OfTheSource(err) {
		j.Logf("building again, without the cache of earlier builds: %v", err)
		solve.CacheFrom = ""
		if err := errors.Join(os.RemoveAll(solve.Out), os.RemoveAll(solve.CacheTo)); err != nil {
			return result, err
		}
		err = solve.Run(ctx, steps)
	}
	if err != nil {
		return result, explainSolve(ctx, j, *docker, err)
	}
	made, err := buildkit.Attach(solve.Out, buildkit.Origin{
		Name: j.Spec.Source.Push, Build: j.Spec.BuildID, Builder: "berth/" + j.Spec.OrgID, BuildKit: version,
		Source: sourceOf(j.Spec.Source), Docker: *docker, NoNetwork: solve.NoNetwork,
		Bases: steps.Bases(), Started: began, Finished: time.Now().UTC(),
	})
	if err != nil {
		return result, fmt.Errorf("describe the image: %w", err)
	}
	for _, line := range made.Notes {
		j.Logf("%s", line)
	}
	j.Logf("built %s in %s", made.Digest, time.Since(began).Round(time.Millisecond))
	return result, nil
}

// prepareSolve lays out what BuildKit gets: a copy of the context in which nothing
// leads out of it, and the Dockerfile.
func prepareSolve(ctx context.Context, j *job.Job, docker jobspec.Docker) (buildkit.Solve, error) {
	s := j.Spec.Source
	solve := buildkit.Solve{
		Command: j.Env["BERTH_BUILDCTL"], Address: j.Env["BERTH_BUILDKIT_ADDR"], Dir: j.Work(),
		Target: docker.Target, Platforms: docker.Platforms, Secrets: map[string]string{}, Out: j.Out("image"),
		NoNetwork: docker.Network == jobspec.NetworkNone || j.Env["BERTH_BUILD_NETWORK"] == jobspec.NetworkNone,
	}
	if solve.Command == "" || solve.Address == "" {
		return solve, job.Failf("ask the operator of this builder to install BuildKit, or to set BERTH_BUILDKIT_ADDR", "this Build Runner has no BuildKit")
	}
	if path, ok := strings.CutPrefix(solve.Address, "unix://"); ok { // no path of a socket may be long
		solve.Dir, solve.Address = filepath.Dir(path), "unix:"+filepath.Base(path)
	}
	root, err := source(ctx, j)
	if err != nil {
		return solve, err
	}
	dir := path.Clean("/" + filepath.ToSlash(s.Directory))
	if s.Kind == "archive" {
		dir = "/" // the archive is the directory
	}
	if solve.Dockerfile, err = dockerfile(j, root, path.Join(dir, path.Clean("/"+docker.Dockerfile))[1:]); err != nil {
		return solve, err
	}
	if solve.Context, err = dockerContext(ctx, j, root, path.Join(dir, path.Clean("/"+docker.Context))[1:]); err != nil {
		return solve, err
	}
	solve.Args = map[string]string{}
	maps.Copy(solve.Args, docker.EnvVars)
	maps.Copy(solve.Args, docker.Args)
	for _, name := range docker.Secrets {
		solve.Secrets[name] = j.In("build", "secrets", name)
	}
	if tls := j.In("build", "tls"); exists(tls) {
		solve.TLS = tls
	}
	cacheOf(j, &solve)
	env, err := j.BaseEnv()
	if err != nil {
		return solve, err
	}
	env["DOCKER_CONFIG"] = j.In("build")
	solve.Env = job.Environ(env)
	return solve, nil
}

// cacheOf names what earlier builds left, if anything, and where this one leaves
// the same.
func cacheOf(j *job.Job, solve *buildkit.Solve) {
	if solve.CacheName = j.Spec.Source.Cache; solve.CacheName == "" {
		return
	}
	solve.CacheTo = j.Out("cache")
	given := j.In("cache")
	if !exists(given) {
		return
	}
	name, err := buildkit.OpenCache(given, j.Work("cache"))
	if err != nil {
		j.Logf("building without the cache of earlier builds: %v", err)
		return
	}
	solve.CacheFrom, solve.CacheFromDigest = j.Work("cache"), name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// dockerContext copies the directory that the build sees.
func dockerContext(ctx context.Context, j *job.Job, root, dir string) (string, error) {
	s := j.Spec.Source
	from := filepath.Join(root, filepath.FromSlash(dir))
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return "", job.Wrongf(correct(j, "context"), "%s: there is no directory %q", describe(s), dir)
	}
	if err := inside(root, from); err != nil {
		return "", job.Wrongf(correct(j, "context"), "%s: directory %q: %v", describe(s), dir, err)
	}
	tree := &copier{root: root, from: from, to: j.Work("context")}
	if err := tree.copy(ctx); err != nil {
		return "", job.Failf("correct "+folder(s), "%s: %v", describe(s), err)
	}
	tree.log(j)
	j.Logf("context of %d files, %d bytes", tree.files, tree.bytes)
	return tree.to, buildkit.Normalise(tree.to)
}

// dockerfile copies the Dockerfile, and its own .dockerignore, to a directory of
// their own.
func dockerfile(j *job.Job, root, name string) (string, error) {
	s := j.Spec.Source
	from := filepath.Join(root, filepath.FromSlash(name))
	text, err := readWithin(root, from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", job.Wrongf(correct(j, "dockerfile"), "%s: there is no file %q", describe(s), name)
	case err != nil:
		return "", job.Wrongf(correct(j, "dockerfile"), "%s: %q: %v", describe(s), name, err)
	}
	text, ignored, err := buildkit.CheckDockerfile(text)
	if err != nil {
		return "", job.Wrongf("remove that line: what BuildKit has built in is docker/dockerfile:1", "%s: %s: %v, which is not run here", describe(s), name, err)
	}
	if ignored != "" {
		j.Logf("%s: the syntax line %s is what BuildKit has built in; its image is not pulled", name, ignored)
	}
	to := j.Work("dockerfile", "Dockerfile")
	if err := job.WriteFile(to, text); err != nil {
		return "", err
	}
	ignore, err := readWithin(root, from+".dockerignore")
	if err == nil {
		err = job.WriteFile(to+".dockerignore", ignore)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return "", job.Wrongf(correct(j, "dockerfile"), "%s: %s.dockerignore: %v", describe(s), name, err)
	}
	return to, buildkit.Normalise(filepath.Dir(to))
}

// readWithin reads a file that no link leads out of the source from.
func readWithin(root, path string) ([]byte, error) {
	if err := inside(root, path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > maxDockerfile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxDockerfile)
	}
	return os.ReadFile(path)
}

// sourceOf is what the provenance says of the source.
func sourceOf(s *jobspec.Source) buildkit.Resource {
	r := buildkit.Resource{Name: "source"}
	switch {
	case s.Commit != "":
		r.URI, r.Digest = "git+"+withoutCredentials(s.Repo), map[string]string{"gitCommit": s.Commit}
	case s.Archive != nil:
		r.URI, r.Digest = "oci:"+s.Archive.Repository, map[string]string{"sha256": strings.TrimPrefix(s.Archive.Digest, "sha256:")}
	}
	return r
}

// explainSolve says what to do about a build that failed.
func explainSolve(ctx context.Context, j *job.Job, docker jobspec.Docker, err error) error {
	if ctx.Err() != nil {
		return job.Failf("", "the build was ended in BuildKit")
	}
	text := err.Error()
	what := describe(j.Spec.Source) + ": "
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("x509: ") && errors.Is(err, buildkit.ErrUnreachable):
		return job.Failf("correct BERTH_BUILDKIT_TLS of this builder: ca.pem is the authority that signed the certificate of BuildKit", "%v", err)
	case errors.Is(err, buildkit.ErrUnreachable) && !strings.HasPrefix(j.Env["BERTH_BUILDKIT_ADDR"], "unix:"):
		return job.Failf("build again; if it stays so, see that the BuildKit of this builder runs, and that its authority signed the certificate in BERTH_BUILDKIT_TLS", "%v", err)
	case errors.Is(err, buildkit.ErrUnreachable), has("transport is closing"), has("error reading from server"), has("error reading server preface"):
		return job.Failf("build again; if it stays so, look after the BuildKit of this builder", "%v", err)
	case has("exec format error"):
		return job.Wrongf("build that stage on the platform of the builder (FROM --platform=$BUILDPLATFORM), or correct platforms",
			"%s%s: a RUN step of platforms %q would need an emulator, which is not used", what, text, docker.Platforms)
	case has("401 Unauthorized"), has("403 Forbidden"), has("authorization failed"), has("pull access denied"):
		return job.Failf("ask the operator of this builder for the credentials of that registry (BERTH_BUILD_SECRETS: ORG/config.json), or use an image that is public", "%s%s", what, text)
	case has("secret") && has("not found"):
		return job.Wrongf(correct(j, "secrets")+": name the secret there", "%s%s", what, text)
	case has("security.insecure is not allowed"), has("network.host is not allowed"), has("entitlement"):
		return job.Wrongf("remove it from the Dockerfile: no RUN step gets rights of the machine", "%s%s", what, text)
	}
	return job.Failf("correct "+docker.Dockerfile+"; the log of the build says more", "%s%s", what, text)
}
