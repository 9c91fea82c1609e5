package build

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
	godigest "github.com/opencontainers/go-digest"
	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestLocalSourceBecomesARelease(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	w := newWorld(t)
	_, builds := w.addConfig(component{name: "card", buildDigest: repeated("1"), source: w.localSource("one")})
	card := builds["card"]

	w.advance(card)
	if diff := cmp.Diff(ended{State: "running"}, w.ended(card)); diff != "" {
		t.Fatalf("build with its job queued (-want +got):\n%s", diff)
	}
	jobID, spec := w.jobOf(card)
	want := jobspec.Spec{
		Version: 1, JobID: jobID, OrgID: w.org, BuildID: card, Kind: "terraform_module", Operation: "build", TimeoutSeconds: 300, File: "components/it.toml",
		Source: &jobspec.Source{
			Kind: "archive", Push: w.org + "/hello/card",
			Archive: &jobspec.Artifact{Repository: w.org + "/sources", Digest: spec.Source.Archive.Digest},
		},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	w.advance(card) // nothing to do while the runner works
	made := w.work(card)
	w.advance(card)
	if diff := cmp.Diff(ended{State: "succeeded", Repository: made.Repository, Digest: made.Digest}, w.ended(card)); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}
	if n := metrictest.Value(t, "build.duration", attribute.String("type", "terraform_module"), attribute.String("outcome", "succeeded")); n < 1 {
		t.Error("the build is not counted")
	}
	if got := w.releases(); got != "1 config 1 sync" {
		t.Errorf("releases: %s", got)
	}
	if got := w.text(`select provenance #>> '{tool,name}' from builds where id = $1`, card); got != "terraform" {
		t.Errorf("provenance names tool %q", got)
	}
	if n := w.count(`select count(*) from runner_jobs`); n != 1 {
		t.Errorf("%d jobs", n)
	}
	// The artifact holds what was uploaded.
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "artifact")
	pull(t, w.remote(w.token(w.org, "pull"), made.Repository), made.Digest, layout, dir)
	if text, err := os.ReadFile(filepath.Join(dir, "main.tf")); err != nil || string(text) != "one" {
		t.Errorf("main.tf = %q, %v", text, err)
	}
}

// Callers that wait for a build or a release wake at every state, by the app.
func TestMovesAreNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, builds := w.addConfig(component{name: "card", buildDigest: repeated("1"), source: w.localSource("one")})
	listener := w.worker.Store.NewListener(model.ChannelBuild)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- listener.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-listener.Ready()
	sub := listener.Subscribe(model.ChannelBuild, w.app)
	defer sub.Close()
	woken := func(state string) {
		t.Helper()
		select {
		case <-sub.C:
		case <-time.After(30 * time.Second):
			t.Fatalf("nobody was woken when the build was %s", state)
		}
		if got := w.ended(builds["card"]).State; got != state {
			t.Fatalf("woken when the build is %s, want %s", got, state)
		}
	}
	w.advance(builds["card"])
	woken("running")
	w.work(builds["card"])
	w.advance(builds["card"])
	woken("succeeded")
}

func TestSameSourceIsNotBuiltTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	src := w.localSource("one")
	card := component{name: "card", buildDigest: repeated("1"), source: src}
	_, builds := w.addConfig(card)
	w.advance(builds["card"])
	made := w.work(builds["card"])
	w.advance(builds["card"])

	again := w.rebuild(card)
	_, other := w.addConfig(component{name: "copy", buildDigest: repeated("1"), source: src})
	for name, buildID := range map[string]string{"the same component": again, "another one of the same": other["copy"]} {
		w.advance(buildID)
		if diff := cmp.Diff(ended{State: "succeeded", ReusedFrom: builds["card"], Repository: made.Repository, Digest: made.Digest}, w.ended(buildID)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if n := w.count(`select count(*) from runner_jobs`); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	if got := w.releases(); got != "1 config 1 sync, 2 config 2 sync" {
		t.Errorf("releases: %s", got)
	}

	_, changed := w.addConfig(component{name: "card", buildDigest: repeated("2"), source: src})
	w.advance(changed["card"])
	if got := w.ended(changed["card"]); got.State != "running" {
		t.Errorf("with other build keys: %+v, want a job", got)
	}
}

func TestLostArtifactIsBuiltAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	card := component{name: "card", buildDigest: repeated("1"), source: w.localSource("one")}
	_, builds := w.addConfig(card)
	w.advance(builds["card"])
	w.work(builds["card"])
	w.advance(builds["card"])
	w.exec(`update builds set artifact_digest = $2 where id = $1`, builds["card"], repeated("0")) // no longer what the registry has

	again := w.rebuild(card)
	w.advance(again)
	made := w.work(again)
	w.advance(again)
	if diff := cmp.Diff(ended{State: "succeeded", Repository: made.Repository, Digest: made.Digest}, w.ended(again)); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}
	// The artifact is the same, so the release of it is whole again.
	if got := w.releases(); got != "1 config 1 sync" {
		t.Errorf("releases: %s", got)
	}
}

func TestMovedBranchIsBuiltAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	repo, err := gogit.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	first := commit(t, repo, dir, "one")
	card := component{name: "card", buildDigest: repeated("1"), source: source.Source{Kind: source.KindGit, Repo: "file://" + dir, Ref: "master", Directory: "."}}
	_, builds := w.addConfig(card)
	w.advance(builds["card"])
	_, spec := w.jobOf(builds["card"])
	want := &jobspec.Source{
		Kind: "archive", Push: w.org + "/hello/card",
		Archive: &jobspec.Artifact{Repository: w.org + "/sources", Digest: spec.Source.Archive.Digest},
		Repo:    "file://" + dir, Ref: "master", Commit: first, Directory: ".",
	}
	if diff := cmp.Diff(want, spec.Source); diff != "" {
		t.Errorf("source of the job (-want +got):\n%s", diff)
	}
	made := w.work(builds["card"])
	w.advance(builds["card"])

	same := w.rebuild(card)
	w.advance(same)
	if diff := cmp.Diff(ended{State: "succeeded", ReusedFrom: builds["card"], Repository: made.Repository, Digest: made.Digest, Commit: first}, w.ended(same)); diff != "" {
		t.Errorf("branch that stayed (-want +got):\n%s", diff)
	}
	second := commit(t, repo, dir, "two")
	moved := w.rebuild(card)
	w.advance(moved)
	newer := w.work(moved)
	w.advance(moved)
	if diff := cmp.Diff(ended{State: "succeeded", Repository: newer.Repository, Digest: newer.Digest, Commit: second}, w.ended(moved)); diff != "" {
		t.Errorf("branch that moved (-want +got):\n%s", diff)
	}
	if got := w.releases(); got != "1 config 1 sync, 2 config 1 rebuild" {
		t.Errorf("releases: %s", got)
	}
}

func commit(t *testing.T, repo *gogit.Repository, dir, contents string) string {
	t.Helper()
	writeFiles(t, dir, map[string]string{"main.tf": contents})
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add("main.tf"); err != nil {
		t.Fatal(err)
	}
	hash, err := tree.Commit(contents, &gogit.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.com", When: time.Unix(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct {
		source source.Source
		try    int
		want   ended
	}{
		"a repository that is not there": {
			source: source.Source{Kind: source.KindGit, Repo: "file:///nonexistent/repo"}, try: 1,
			want: ended{State: "failed", Error: "repository file:///nonexistent/repo does not exist, or is not public; correct repo in components/it.toml, or sync with a copy of the repository: berth sync --source-map file:///nonexistent/repo=FOLDER"},
		},
		"a scheme that is refused": {
			source: source.Source{Kind: source.KindGit, Repo: "ext::sh -c true"}, try: 1,
			want: ended{State: "failed", Error: `repositories are not read by "ext": use https; correct repo in components/it.toml`},
		},
		"an upload that is gone": {
			source: source.Source{Kind: source.KindLocal, Digest: repeated("9")}, try: 1,
			want: ended{State: "failed", Error: "the uploaded source is gone"},
		},
		"an upload that is no archive": {
			source: source.Source{Kind: source.KindLocal, Digest: someDigest}, try: 1,
			want: ended{State: "failed"},
		},
		"a server where nobody listens, at once": {
			source: source.Source{Kind: source.KindGit, Repo: "https://127.0.0.1:1/x.git"}, try: 1,
			want: ended{State: "failed", Error: "repository https://127.0.0.1:1/x.git cannot be reached: 127.0.0.1:1 refuses the connection; correct repo in components/it.toml, or sync with a copy of the repository: berth sync --source-map https://127.0.0.1:1/x.git=FOLDER"},
		},
	} {
		_, builds := w.addConfig(component{name: "card", buildDigest: godigest.FromString(name).String(), source: tc.source})
		if err := w.worker.Advance(t.Context(), builds["card"], tc.try); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := w.ended(builds["card"])
		if tc.want.Error == "" && strings.HasPrefix(got.Error, "the source cannot be used: ") {
			got.Error = ""
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := w.releases(); got != "" {
		t.Errorf("releases: %s", got)
	}

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(server.Close)
	w.worker.Resolver = source.NewResolver(source.Config{Transport: server.Client().Transport})
	repo := server.URL + "/x.git"
	_, builds := w.addConfig(component{name: "card", buildDigest: "x", source: source.Source{Kind: source.KindGit, Repo: repo}})
	if err := w.worker.Advance(t.Context(), builds["card"], 1); !errors.Is(err, ErrTryAgain) {
		t.Errorf("a server that cannot answer now: %v, want to be tried again", err)
	}
	says := "repository " + repo + " cannot be read now: its server answers 502 Bad Gateway"
	if diff := cmp.Diff(ended{State: "queued", Error: says + "; trying again"}, w.ended(builds["card"])); diff != "" {
		t.Errorf("meanwhile (-want +got):\n%s", diff)
	}
	if err := w.worker.Advance(t.Context(), builds["card"], MaxTries); err != nil {
		t.Error(err)
	}
	says += "; correct repo in components/it.toml, or sync with a copy of the repository: berth sync --source-map " + repo + "=FOLDER"
	if diff := cmp.Diff(ended{State: "failed", Error: says}, w.ended(builds["card"])); diff != "" {
		t.Errorf("at last (-want +got):\n%s", diff)
	}
}

func TestFailedJobFailsTheBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	card := component{name: "card", buildDigest: repeated("1"), source: w.localSource("bad")}
	_, builds := w.addConfig(card)
	w.advance(builds["card"])
	w.report(builds["card"], "failed", jobspec.Result{Error: "main.tf:1: bad"})
	w.advance(builds["card"])
	if diff := cmp.Diff(ended{State: "failed", Error: "main.tf:1: bad"}, w.ended(builds["card"])); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}
	// The config keeps its item; a build of the same that succeeds completes it.
	again := w.rebuild(card)
	w.advance(again)
	w.work(again)
	w.advance(again)
	if got := w.releases(); got != "1 config 1 sync" {
		t.Errorf("releases: %s", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, builds := w.addConfig(
		component{name: "early", buildDigest: repeated("1"), source: w.localSource("1")},
		component{name: "queued", buildDigest: repeated("2"), source: w.localSource("2")},
		component{name: "leased", buildDigest: repeated("3"), source: w.localSource("3")},
	)
	w.advance(builds["queued"])
	w.advance(builds["leased"])
	leased, _ := w.jobOf(builds["leased"])
	w.exec(`update runner_jobs set state = 'leased', attempt = 1 where id = $1`, leased)
	w.exec(`update builds set cancel_requested_at = now()`)
	for _, buildID := range builds {
		w.advance(buildID)
	}
	if diff := cmp.Diff(ended{State: "cancelled"}, w.ended(builds["early"])); diff != "" {
		t.Errorf("before its job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ended{State: "cancelled"}, w.ended(builds["queued"])); diff != "" {
		t.Errorf("with its job queued (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ended{State: "running"}, w.ended(builds["leased"])); diff != "" {
		t.Errorf("with its job at work (-want +got):\n%s", diff)
	}
	if n := w.count(`select count(*) from runner_jobs where id = $1 and cancel_requested_at is not null`, leased); n != 1 {
		t.Error("the runner was not asked to stop")
	}
	w.report(builds["leased"], "cancelled", jobspec.Result{})
	w.advance(builds["leased"])
	if diff := cmp.Diff(ended{State: "cancelled"}, w.ended(builds["leased"])); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}

// A Build Runner is not believed: it cannot pass off what is elsewhere, or what
// it never pushed, as its artifact.
func TestLyingRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, artifact := range map[string]jobspec.BuiltArtifact{
		"never pushed":        {Repository: w.org + "/hello/card", Digest: repeated("7")},
		"of another org":      {Repository: "org_x/hello/card", Digest: repeated("7")},
		"of the uploads":      {Repository: w.org + "/sources", Digest: repeated("7")},
		"a path for a digest": {Repository: w.org + "/hello/card", Digest: "../../../org_x/hello/card"},
	} {
		_, builds := w.addConfig(component{name: "card", buildDigest: name, source: w.localSource(name)})
		w.advance(builds["card"])
		w.report(builds["card"], "succeeded", jobspec.Result{Artifact: &artifact})
		w.advance(builds["card"])
		if got := w.ended(builds["card"]); got.State != "failed" || got.Error == "" {
			t.Errorf("%s: %+v, want failed", name, got)
		}
	}
}

func TestTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, builds := w.addConfig(component{name: "card", buildDigest: repeated("1"), source: w.localSource("one")})
	w.together(builds["card"], builds["card"], builds["card"])
	if n := w.count(`select count(*) from runner_jobs`); n != 1 {
		t.Fatalf("%d jobs, want 1", n)
	}
	w.work(builds["card"])
	w.together(builds["card"], builds["card"], builds["card"])
	if got := w.releases(); got != "1 config 1 sync" {
		t.Errorf("releases: %s", got)
	}
}

func TestTwoLastBuildsMakeOneRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := 1; n <= 5; n++ {
		_, builds := w.addConfig(
			component{name: "a", buildDigest: repeated("a") + string(rune('0'+n)), source: w.localSource("a" + string(rune('0'+n)))},
			component{name: "b", buildDigest: repeated("b") + string(rune('0'+n)), source: w.localSource("b" + string(rune('0'+n)))},
		)
		w.together(builds["a"], builds["b"])
		w.work(builds["a"])
		w.work(builds["b"])
		w.together(builds["a"], builds["b"], builds["a"], builds["b"])
	}
	want := "1 config 1 sync, 2 config 2 sync, 3 config 3 sync, 4 config 4 sync, 5 config 5 sync"
	if got := w.releases(); got != want {
		t.Errorf("releases: %s", got)
	}
	if n := w.count(`select count(*) from release_items`); n != 10 {
		t.Errorf("%d release items, want 10", n)
	}
}

// One build may be the last of several configs.
func TestBuildCompletesEveryConfigThatWaitsForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := component{name: "a", buildDigest: repeated("a"), source: w.localSource("a")}
	_, first := w.addConfig(shared)
	shared.build = first["a"]
	_, second := w.addConfig(shared, component{name: "b", buildDigest: repeated("b"), source: w.localSource("b")})
	w.advance(second["b"])
	w.work(second["b"])
	w.advance(second["b"])
	if got := w.releases(); got != "" {
		t.Errorf("releases before: %s", got)
	}
	w.advance(first["a"])
	w.work(first["a"])
	w.advance(first["a"])
	if got := w.releases(); got != "1 config 1 sync, 2 config 2 sync" {
		t.Errorf("releases: %s", got)
	}
	// A rebuild is of the newest config; the older one keeps its release.
	shared.source = w.localSource("a2")
	again := w.rebuild(shared)
	w.advance(again)
	w.work(again)
	w.advance(again)
	if got := w.releases(); got != "1 config 1 sync, 2 config 2 sync, 3 config 2 rebuild" {
		t.Errorf("releases after a rebuild: %s", got)
	}
}

// together advances builds at the same time.
func (w *world) together(buildIDs ...string) {
	w.t.Helper()
	var group sync.WaitGroup
	for _, buildID := range buildIDs {
		group.Go(func() {
			if err := w.worker.Advance(w.t.Context(), buildID, 1); err != nil {
				w.t.Errorf("advance: %v", err)
			}
		})
	}
	group.Wait()
}

// A worker that dies after any number of steps leaves rows from which the next
// one comes to the same end.
func TestCrashBetweenAnyTwoTransactions(t *testing.T) {
	t.Parallel()
	const most = 12 // more than any build needs
	for steps := range most {
		w := newWorld(t)
		_, builds := w.addConfig(component{name: "card", buildDigest: repeated("1"), source: w.localSource("one")})
		card := builds["card"]
		w.crashAfter(card, steps)
		w.advance(card)
		made := w.work(card)
		w.crashAfter(card, steps)
		w.advance(card)
		if diff := cmp.Diff(ended{State: "succeeded", Repository: made.Repository, Digest: made.Digest}, w.ended(card)); diff != "" {
			t.Errorf("after %d steps (-want +got):\n%s", steps, diff)
		}
		if jobs, releases := w.count(`select count(*) from runner_jobs`), w.releases(); jobs != 1 || releases != "1 config 1 sync" {
			t.Errorf("after %d steps: %d jobs, releases: %s", steps, jobs, releases)
		}
	}
}

// crashAfter advances by some steps and forgets what was learned.
func (w *world) crashAfter(buildID string, steps int) {
	w.t.Helper()
	var facts Facts
	for range steps {
		s, d, err := w.worker.step(context.Background(), task{org: w.org, buildID: buildID}, facts)
		if err != nil {
			w.t.Fatal(err)
		}
		switch d.Act {
		case Wait, Done:
			return
		case Resolve, Look, Stage, StartRunner:
			if facts, err = w.worker.lookOutside(context.Background(), s, d); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func TestUnknownBuildIsNoWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.worker.Advance(t.Context(), "bld_00000000000000000000000000", 1); err != nil {
		t.Error(err)
	}
}

// With tokens that the database knows, one org's runner gets at nothing of
// another's.
func TestRegistryOfAnotherOrg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, builds := w.addConfig(component{name: "card", buildDigest: repeated("1"), source: w.localSource("secret module")})
	w.advance(builds["card"])
	made := w.work(builds["card"])
	stranger := w.token(w.addOrg("other"), "pull", "push")
	target := w.remote(stranger, made.Repository)
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Pull(t.Context(), godigest.Digest(made.Digest), layout, oci.TransferOptions{}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("pull of another org's artifact: %v, want not found", err)
	}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"main.tf": "evil"})
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Push(t.Context(), layout, packed.Digest.String(), oci.TransferOptions{}); err == nil {
		t.Error("push into another org's repository went through")
	}
	for name, spoil := range map[string]string{
		"revoked": `update registry_tokens set revoked_at = now() where hash = $1`,
		"expired": `update registry_tokens set expires_at = now() where hash = $1`,
		"gone":    `delete from registry_tokens where hash = $1`,
	} {
		token := w.token(w.org, "pull")
		if err := w.remote(token, made.Repository).Pull(t.Context(), godigest.Digest(made.Digest), layout, oci.TransferOptions{}); err != nil {
			t.Errorf("before it was %s: %v", name, err)
		}
		w.exec(spoil, hashOf(token))
		if err := w.remote(token, made.Repository).Pull(t.Context(), godigest.Digest(made.Digest), layout, oci.TransferOptions{}); err == nil {
			t.Errorf("a token that is %s still pulls", name)
		}
	}
}
