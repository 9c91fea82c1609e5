package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

const (
	partYAML  = "apiVersion: v2\nname: part\nversion: 0.1.0\n"
	needsPart = chartYAML + "dependencies:\n  - {name: part, version: 0.1.x, repository: \"file://../part\"}\n"
)

func chartJob(t *testing.T, source jobspec.Source, files map[string]string) *jobDir {
	t.Helper()
	j := buildJob(t, source)
	j.spec.Kind = jobspec.KindHelmChart
	for name, contents := range files {
		j.write(t, "in/source/"+name, contents)
	}
	return j
}

func chartArchive(t *testing.T, files map[string]string) *jobDir {
	t.Helper()
	return chartJob(t, jobspec.Source{Kind: "archive", Archive: &jobspec.Artifact{Repository: "org_1/sources", Digest: "sha256:0"}}, files)
}

func TestBuildOfAChart(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"Chart.yaml": strings.Replace(needsPart, "file://../part", "file://part", 1), "values.yaml": "a: 1\n",
		"templates/all.yaml": "{{ .Values.not.there }}\n", "values.schema.json": `{"required":["host"]}`,
		"part/Chart.yaml": partYAML, "part/templates/x.yaml": "a: b\n",
	}
	j := chartArchive(t, files)
	j.must(t)
	want := map[string]string{}
	for name, contents := range files {
		want[name] = contents
		if strings.HasPrefix(name, "part/") {
			want["charts/"+name] = contents
		}
	}
	if diff := cmp.Diff(want, j.artifact(t)); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	wantContains(t, "log", j.log(t), "packed dependency part 0.1.0 from part")
}

func TestBuildOfAChartOfACommit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	commit := repo.commit(t, map[string]string{
		"charts/web/Chart.yaml": needsPart, "charts/part/Chart.yaml": partYAML + "dependencies:\n  - {name: deep, version: \"1\", repository: \"file://../deep\"}\n",
		"charts/deep/Chart.yaml": "apiVersion: v2\nname: deep\nversion: 1.0.0\n",
	})
	j := chartJob(t, jobspec.Source{Kind: "git", Repo: repo.url(), Ref: "main", Commit: commit, Directory: "charts/web"}, nil)
	j.must(t)
	if _, ok := j.artifact(t)["charts/part/charts/deep/Chart.yaml"]; !ok {
		t.Errorf("a dependency of a dependency is missing: %v", j.artifact(t))
	}
}

func TestChartsThatCannotBe(t *testing.T) {
	t.Parallel()
	vendored := strings.Replace(needsPart, "file://../part", "https://127.0.0.1:1/charts", 1)
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no chart", map[string]string{"README.md": "x"}, "there is no Chart.yaml in it"},
		{"no version", map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\n"}, "version is required"},
		{"a library", map[string]string{"Chart.yaml": chartYAML + "type: library\n"}, "is a library"},
		{"values that are no YAML", map[string]string{"Chart.yaml": chartYAML, "values.yaml": "a: [\n"}, "values.yaml"},
		{"a template that cannot be parsed", map[string]string{"Chart.yaml": chartYAML, "templates/x.yaml": "{{ if }}"}, "parse error at (web/templates/x.yaml:1)"},
		{"a dependency outside", map[string]string{"Chart.yaml": needsPart}, `there is no directory "../part"`},
		{"another version", map[string]string{"Chart.yaml": vendored, "charts/part/Chart.yaml": strings.Replace(partYAML, "0.1.0", "0.2.0", 1)}, "version 0.1.x is wanted, 0.2.0 is there"},
		{"another lock", map[string]string{"Chart.yaml": vendored, "charts/part/Chart.yaml": partYAML, "Chart.lock": "dependencies: []\ndigest: sha256:0\ngenerated: \"2026-01-01T00:00:00Z\"\n"}, "Chart.lock is not of the dependencies"},
		{"no repository", map[string]string{"Chart.yaml": strings.Replace(needsPart, "file://../part", "@internal", 1)}, `repository "@internal" is not known`},
		{"a repository that is not reached", map[string]string{"Chart.yaml": vendored}, "dependency part cannot be downloaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := chartArchive(t, tc.files).run(t)
			if r.Outcome != jobspec.OutcomeFailed {
				t.Errorf("outcome %s", r.Outcome)
			}
			wantContains(t, "error", r.Error, tc.want)
		})
	}
}

// A chart that Helm has packed itself, with its lock, is taken as it is.
func TestBuildOfAVendoredChart(t *testing.T) {
	t.Parallel()
	j := chartArchive(t, map[string]string{
		"Chart.yaml": strings.Replace(needsPart, "file://../part", "https://127.0.0.1:1/charts", 1), "charts/part/Chart.yaml": partYAML,
	})
	j.must(t)
	if _, err := os.Stat(filepath.Join(j.path, "out/artifact/charts/part/Chart.yaml")); err != nil {
		t.Error(err)
	}
}
