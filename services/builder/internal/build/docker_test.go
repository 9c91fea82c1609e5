package build

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// Every key of the format that says how an image is built reaches the engine.
func TestDockerKeysReachTheEngine(t *testing.T) {
	t.Parallel()
	block := appconfig.Component{Name: "web", Type: appconfig.TypeDockerBuild, DockerBuild: &appconfig.DockerBuild{
		Dockerfile: "docker/Dockerfile", Context: "web", Target: "release", Args: map[string]string{"A": "1"}, EnvVars: map[string]string{"B": "2"},
		Platforms: []string{"linux/arm64"}, Network: appconfig.DockerNetworkNone, Secrets: []string{"npm"},
	}}
	revision, err := json.Marshal(block)
	if err != nil {
		t.Fatal(err)
	}
	want := &jobspec.Docker{
		Dockerfile: "docker/Dockerfile", Context: "web", Target: "release", Args: map[string]string{"A": "1"}, EnvVars: map[string]string{"B": "2"},
		Platforms: []string{"linux/arm64"}, Network: jobspec.NetworkNone, Secrets: []string{"npm"},
	}
	b := Build{OrgID: "org_1", Type: string(jobspec.KindDockerBuild), Docker: dockerOf(revision), Source: source.Source{Kind: source.KindGit, Repo: "acme/web"}, Commit: "c"}
	got := specOf(b, "https://git.internal/acme/web")
	if diff := cmp.Diff(want, got.Source.Docker); diff != "" || got.Kind != jobspec.KindDockerBuild {
		t.Errorf("kind %s, docker (-want +got):\n%s", got.Kind, diff)
	}
	if other := dockerOf(json.RawMessage(`{"terraform_module": {}}`)); other != nil {
		t.Errorf("a module is built by %+v", other)
	}
}

// BenchmarkUnchangedContext is what a sync of the same source costs: the decision
// that an earlier build stands for it, from the queued row to the one that succeeded.
func BenchmarkUnchangedContext(b *testing.B) {
	w := newWorld(b)
	web := component{name: "web", buildDigest: repeated("1"), source: w.localSource("one")}
	_, builds := w.addConfig(web)
	w.advance(builds["web"])
	w.work(builds["web"])
	w.advance(builds["web"])
	for b.Loop() {
		b.StopTimer()
		again := w.rebuild(web)
		b.StartTimer()
		w.advance(again)
		b.StopTimer()
		if got := w.ended(again); got.State != "succeeded" || got.ReusedFrom != builds["web"] {
			b.Fatalf("%+v", got)
		}
		b.StartTimer()
	}
}
