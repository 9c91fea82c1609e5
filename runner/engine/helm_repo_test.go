package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// pack is a packed chart, with names just as they are given.
func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := tape.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []func() error{tape.Close, zip.Close} {
		if err := closer(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// repoJob is a build of a chart of a repository.
func repoJob(t *testing.T, packed string, change func(*jobspec.Chart)) *jobDir {
	t.Helper()
	chart := &jobspec.Chart{Name: "hello", Version: "1.2.0", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(packed)))}
	if change != nil {
		change(chart)
	}
	return chartJob(t, jobspec.Source{
		Kind: "archive", Archive: &jobspec.Artifact{Repository: "org_1/sources", Digest: "sha256:0"}, Repo: "https://charts.example.com/stable", Ref: "^1", Chart: chart,
	}, map[string]string{jobspec.ChartFile: packed})
}

const repoChart = "apiVersion: v2\nname: hello\nversion: 1.2.0\n"

func TestBuildOfAChartOfARepository(t *testing.T) {
	t.Parallel()
	part := pack(t, map[string]string{"part/Chart.yaml": partYAML, "part/templates/x.yaml": "a: b\n"})
	j := repoJob(t, pack(t, map[string]string{
		"hello/Chart.yaml":         repoChart + "dependencies:\n  - {name: part, version: 0.1.x, repository: \"https://charts.example.com/stable\"}\n",
		"hello/templates/all.yaml": "a: {{ .Values.a }}\n", "hello/values.yaml": "a: 1\n", "hello/charts/part-0.1.0.tgz": part,
	}), func(c *jobspec.Chart) { c.Before = "sha256:0ld" })
	j.must(t)
	got := j.artifact(t)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"Chart.yaml", "charts/part-0.1.0.tgz", "templates/all.yaml", "values.yaml"}) || got["charts/part-0.1.0.tgz"] != part {
		t.Errorf("artifact has %q", names)
	}
	wantContains(t, "log", j.log(t), `chart hello 1.2.0, asked for as "^1", digest sha256:`)
	wantContains(t, "log", j.log(t), "version 1.2.0 of chart hello is another chart than before: it was sha256:0ld")
}

// What a repository gives is checked before anything of it is used.
func TestBuildRefusesBadChartsOfRepositories(t *testing.T) {
	t.Parallel()
	good := map[string]string{"hello/Chart.yaml": repoChart}
	with := func(name, contents string) map[string]string {
		files := maps.Clone(good)
		files[name] = contents
		return files
	}
	for _, tc := range []struct {
		name   string
		files  map[string]string
		change func(*jobspec.Chart)
		want   string
	}{
		{name: "another digest", files: good, change: func(c *jobspec.Chart) { c.Digest = "sha256:0" }, want: "instead of sha256:0"},
		{name: "another chart", files: good, change: func(c *jobspec.Chart) { c.Name = "other" }, want: "what the repository gives is chart hello 1.2.0"},
		{name: "another version", files: good, change: func(c *jobspec.Chart) { c.Version = "1.3.0" }, want: "what the repository gives is chart hello 1.2.0"},
		{name: "a path that leads out of it", files: with("hello/../../../evil", "x"), want: "cannot be unpacked"},
		{name: "an absolute path", files: with("hello//etc/evil", "x"), want: "cannot be unpacked"},
		{name: "a name that leads out of it", files: map[string]string{"hello/Chart.yaml": "apiVersion: v2\nname: ../../evil\nversion: 1.2.0\n"}, want: "cannot be unpacked"},
		{name: "more than may be unpacked", files: with("hello/huge", strings.Repeat("0", 6<<20)), want: "larger than the maximum"},
		{name: "no chart", files: map[string]string{"hello/README.md": "x"}, want: "Chart.yaml file is missing"},
		{name: "a template that cannot be parsed", files: with("hello/templates/x.yaml", "{{ if }}"), want: "templates/x.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := repoJob(t, pack(t, tc.files), tc.change)
			if res := j.run(t); res.Outcome == "succeeded" || !strings.Contains(res.Error, tc.want) {
				t.Errorf("%s: %s, want …%s…", res.Outcome, res.Error, tc.want)
			}
			err := filepath.WalkDir(filepath.Dir(j.path), func(path string, e fs.DirEntry, err error) error {
				if err == nil && strings.Contains(e.Name(), "evil") {
					t.Errorf("it wrote %s", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
