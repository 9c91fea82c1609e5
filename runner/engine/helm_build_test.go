package engine_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

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
		fix   string // what the remedy says
	}{
		{"no chart", map[string]string{"README.md": "x"}, "src/web: there is no Chart.yaml in it", "correct src/web, or what components/web.toml says of its source; `helm lint` there says more"},
		{"no version", map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\n"}, "src/web/Chart.yaml: version is required", "correct src/web/Chart.yaml; "},
		{"a library", map[string]string{"Chart.yaml": chartYAML + "type: library\n"}, "src/web: chart web is a library", "correct src/web, or what components/web.toml says"},
		{"values that are no YAML", map[string]string{"Chart.yaml": chartYAML, "values.yaml": "a: [\n"}, "src/web/values.yaml:1: ", "correct line 1 of src/web/values.yaml; "},
		{"a template that cannot be parsed", map[string]string{"Chart.yaml": chartYAML, "templates/x.yaml": "{{ if }}"}, "src/web/templates/x.yaml:1: missing value for if", "correct line 1 of src/web/templates/x.yaml; "},
		{"a dependency outside", map[string]string{"Chart.yaml": needsPart}, `src/web/Chart.yaml: dependency part of chart web: there is no directory "../part"`, "correct src/web/Chart.yaml; `helm dependency build` there says more"},
		{"another version", map[string]string{"Chart.yaml": vendored, "charts/part/Chart.yaml": strings.Replace(partYAML, "0.1.0", "0.2.0", 1)}, "version 0.1.x is wanted, 0.2.0 is there", "correct src/web/Chart.yaml; "},
		{"another lock", map[string]string{"Chart.yaml": vendored, "charts/part/Chart.yaml": partYAML, "Chart.lock": "dependencies: []\ndigest: sha256:0\ngenerated: \"2026-01-01T00:00:00Z\"\n"}, "Chart.lock is not of the dependencies", "correct src/web/Chart.yaml; "},
		{"no repository", map[string]string{"Chart.yaml": strings.Replace(needsPart, "file://../part", "@internal", 1)}, `repository "@internal" is not known`, "correct src/web/Chart.yaml; "},
		{"a Chart.yaml that is no YAML", map[string]string{"Chart.yaml": chartYAML + "a: b: c\n"}, "src/web/Chart.yaml:", "of src/web/Chart.yaml; "},
		{"a registry that is not reached", map[string]string{"Chart.yaml": strings.Replace(needsPart, "file://../part", "oci://127.0.0.1:1/charts", 1)}, "127.0.0.1:1 refuses the connection", "check its repository in src/web/Chart.yaml"},
		{"a repository that is not reached", map[string]string{"Chart.yaml": vendored}, "src/web: dependency part cannot be downloaded from https://127.0.0.1:1/charts: 127.0.0.1:1 refuses the connection", "check its repository in src/web/Chart.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := chartArchive(t, tc.files)
			j.spec.Source.Directory, j.spec.File = "src/web", "components/web.toml"
			r := j.run(t)
			wantContains(t, "remedy", r.Remedy, tc.fix)
			t.Logf("%s; %s", r.Error, r.Remedy)
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

// A chart may depend on another one several times, each under an alias: on one
// version, or on two.
func TestBuildOfAChartWithTwoCopiesOfADependency(t *testing.T) {
	t.Parallel()
	dependencies := func(versions [2]string, repository string) string {
		text := chartYAML + "dependencies:\n"
		for i, version := range versions {
			text += fmt.Sprintf("  - {name: part, version: %s, repository: %q, alias: copy%d}\n", version, repository, i)
		}
		return text
	}
	part := func(version string) string { return "apiVersion: v2\nname: part\nversion: " + version + "\n" }
	for name, files := range map[string]map[string]string{
		"one version, from the source": {
			"Chart.yaml": dependencies([2]string{"0.1.0", "0.1.0"}, "file://part"), "part/Chart.yaml": part("0.1.0"), "part/templates/x.yaml": "a: b\n",
		},
		"two versions, from the source": {
			"Chart.yaml": chartYAML + "dependencies:\n" +
				"  - {name: part, version: 0.1.0, repository: \"file://old\", alias: copy0}\n  - {name: part, version: 0.2.0, repository: \"file://new\", alias: copy1}\n",
			"old/Chart.yaml": part("0.1.0"), "new/Chart.yaml": part("0.2.0"),
		},
		"one version, vendored": {
			"Chart.yaml": dependencies([2]string{"0.1.0", "0.1.x"}, "https://127.0.0.1:1/charts"), "charts/part/Chart.yaml": part("0.1.0"),
		},
		"two versions, vendored": {
			"Chart.yaml":             dependencies([2]string{"0.1.0", "0.2.0"}, "https://127.0.0.1:1/charts"),
			"charts/one/Chart.yaml":  part("0.1.0"),
			"charts/two/Chart.yaml":  part("0.2.0"),
			"charts/two/values.yaml": "a: 1\n",
		},
		"two versions of a Chart.lock": {
			"Chart.yaml":            dependencies([2]string{"0.1.x", "0.2.x"}, "https://127.0.0.1:1/charts"),
			"charts/one/Chart.yaml": part("0.1.7"),
			"charts/two/Chart.yaml": part("0.2.7"),
			"Chart.lock":            lockOf(t, dependencies([2]string{"0.1.x", "0.2.x"}, "https://127.0.0.1:1/charts"), "0.1.7", "0.2.7"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := chartArchive(t, files)
			j.must(t)
			wantContains(t, "log", j.log(t), "chart web 1.0.0")
		})
	}
	// A version that is not there is still told.
	r := chartArchive(t, map[string]string{
		"Chart.yaml":            dependencies([2]string{"0.1.0", "0.3.0"}, "https://127.0.0.1:1/charts"),
		"charts/one/Chart.yaml": part("0.1.0"), "charts/two/Chart.yaml": part("0.2.0"),
	}).run(t)
	wantContains(t, "error", r.Error, "version 0.3.0 is wanted, 0.1.0 and 0.2.0 are there")
}

// lockOf is the Chart.lock of a Chart.yaml, with exact versions.
func lockOf(t *testing.T, chartYAML string, versions ...string) string {
	t.Helper()
	var c struct {
		Dependencies []*helmchart.Dependency `json:"dependencies"`
	}
	if err := yaml.Unmarshal([]byte(chartYAML), &c); err != nil {
		t.Fatal(err)
	}
	var locked []*helmchart.Dependency
	for i, d := range c.Dependencies {
		locked = append(locked, &helmchart.Dependency{Name: d.Name, Repository: d.Repository, Version: versions[i]})
	}
	data, err := json.Marshal([2][]*helmchart.Dependency{c.Dependencies, locked})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{"dependencies": locked, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(data)), "generated": "2026-01-01T00:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
