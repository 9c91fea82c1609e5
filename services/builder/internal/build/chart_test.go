package build

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	godigest "github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// chartRepo is a private repository with one version of one chart.
type chartRepo struct{ packed string }

func (c *chartRepo) pin() string {
	return fmt.Sprintf("1.4.2@sha256:%x", sha256.Sum256([]byte(c.packed)))
}

func (c *chartRepo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	switch {
	case user != "acme" || password != chartPassword:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/index.yaml":
		_, digest, _ := strings.Cut(c.pin(), "@sha256:")
		fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.4.2, digest: %s, urls: [web.tgz]}\n", digest)
	default:
		fmt.Fprint(w, c.packed)
	}
}

const chartPassword = "hunter2hunter2"

// A range becomes a version and a digest, and the packed chart travels to the
// engine without the credentials that opened its repository. The same chart is not
// built twice, whatever its range; another one in the same version is, and the
// build says so.
func TestChartOfARepositoryBecomesAnArtifact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo := &chartRepo{packed: "one"}
	server := httptest.NewServer(repo)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{%q: {"username": "acme", "password": %q, "orgs": [%q]}}`, server.URL, chartPassword, w.org), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials, err := keyring.Read(file, keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.worker.Resolver = source.NewResolver(source.Config{Keys: credentials})

	chart := component{name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindChart, Repo: server.URL, Directory: "web", Ref: "^1.4"}}
	_, builds := w.addConfig(chart)
	first := builds["web"]
	w.advance(first)
	_, spec := w.jobOf(first)
	_, digest, _ := strings.Cut(repo.pin(), "@")
	want := &jobspec.Source{
		Kind: "archive", Archive: spec.Source.Archive, Repo: server.URL, Ref: "^1.4", Push: w.org + "/hello/web",
		Chart: &jobspec.Chart{Name: "web", Version: "1.4.2", Digest: digest},
	}
	if diff := cmp.Diff(want, spec.Source); diff != "" || spec.Source.Archive == nil {
		t.Fatalf("source of the job (-want +got):\n%s", diff)
	}
	dir := filepath.Join(t.TempDir(), "source")
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pull(t, w.remote(w.token(w.org, "pull"), spec.Source.Archive.Repository), spec.Source.Archive.Digest, layout, dir)
	if packed, err := os.ReadFile(filepath.Join(dir, jobspec.ChartFile)); err != nil || godigest.FromBytes(packed).String() != digest {
		t.Errorf("the engine gets %q, %v", packed, err)
	}
	w.work(first)
	w.advance(first)
	if got := w.ended(first); got.State != "succeeded" || got.Commit != repo.pin() {
		t.Fatalf("build: %+v, want it done as %s", got, repo.pin())
	}

	exact := chart
	exact.buildDigest, exact.source.Ref = repeated("2"), "1.4.2"
	_, builds = w.addConfig(exact)
	w.advance(builds["web"])
	if got := w.ended(builds["web"]); got.State != "succeeded" || got.ReusedFrom != first {
		t.Errorf("the same chart by another range: %+v, want it taken over", got)
	}

	repo.packed = "two"
	replaced := w.rebuild(chart)
	w.advance(replaced)
	_, spec = w.jobOf(replaced)
	if spec.Source.Chart.Before != digest || w.ended(replaced).Commit != repo.pin() {
		t.Errorf("another chart in the same version: %+v, want a job for %s that names %s", spec.Source.Chart, repo.pin(), digest)
	}
	w.work(replaced)
	w.advance(replaced)
	if got := w.text(`select provenance->'source'->>'before' from builds where id = $1`, replaced); got != digest {
		t.Errorf("provenance names %q as what it was before, want %s", got, digest)
	}
	if n := w.count(`select count(*) from builds b left join runner_jobs j on j.build_id = b.id where b::text like $1 or j::text like $1`, "%"+chartPassword+"%"); n > 0 {
		t.Errorf("%d rows hold the password", n)
	}
}

func TestNextOfAChart(t *testing.T) {
	t.Parallel()
	pin := "1.4.2@" + someDigest
	chart := func(change ...func(*State)) State {
		return local(append([]func(*State){func(s *State) {
			s.Build.Type = "helm_chart"
			s.Build.Source = source.Source{Kind: source.KindChart, Repo: "https://charts.example.com", Directory: "web", Ref: "^1"}
		}}, change...)...)
	}
	resolved := func(s *State) { s.Build.Commit, s.Build.Resolved = pin, resolvedDigest(s.Build, pin) }
	located := func(s *State) { s.Facts.Commit = source.Commit{URL: "https://charts.example.com/web.tgz", Hash: pin} }
	for _, tc := range []struct {
		name  string
		state State
		want  Act
	}{
		{"its version is looked up", chart(), Resolve},
		{"and written down", chart(located), RecordSource},
		{"another worker looks up where it is", chart(resolved), Resolve},
		{"it is downloaded", chart(resolved, located), Stage},
		{"what is downloaded is not looked up again", chart(resolved, staged), StartRunner},
		{"the engine gets it", chart(resolved, staged, withRunner), QueueJob},
	} {
		if got := Next(tc.state); got.Act != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got.Act, tc.want)
		}
	}
}
