package sync

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
)

// isMistake tells errors of the command line.
func isMistake(err error) bool {
	_, ok := errors.AsType[usage.Error](err)
	return ok
}

func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"acme/app":                             "github.com/acme/app",
		"acme/app.git":                         "github.com/acme/app",
		"https://github.com/acme/app":          "github.com/acme/app",
		"https://GitHub.com/acme/app.git/":     "github.com/acme/app",
		"git@github.com:acme/app.git":          "github.com/acme/app",
		"ssh://git@git.example.com/acme/app":   "git.example.com/acme/app",
		"https://git.example.com:8443/a/b/c":   "git.example.com:8443/a/b/c",
		"https://user@git.example.com/a/b.git": "git.example.com/a/b",
	} {
		if got := repositoryOf(written); got != want {
			t.Errorf("%s is %s, want %s", written, got, want)
		}
	}
}

func TestSourceMapEntries(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]mapping{
		"acme/app=../app":                        {repo: "github.com/acme/app", dir: ".", local: "../app"},
		"acme/app//infra/aws=x":                  {repo: "github.com/acme/app", dir: "infra/aws", local: "x"},
		"https://git.example.com/a/b=/x":         {repo: "git.example.com/a/b", dir: ".", local: "/x"},
		"https://git.example.com/a/b.git//c/=/x": {repo: "git.example.com/a/b", dir: "c", local: "/x"},
		"acme/app=a=b":                           {repo: "github.com/acme/app", dir: ".", local: "a=b"},
	} {
		want.written = entry
		got, err := parseMapping(entry)
		if err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", entry, got, err, want)
		}
	}
	for _, bad := range []string{"", "acme/app", "=x", "acme/app=", "acme/app//../x=y"} {
		if got, err := parseMapping(bad); !isMistake(err) {
			t.Errorf("%q is %+v (%v), want a mistake of the command line", bad, got, err)
		}
	}
	if _, err := ReadSourceMap([]string{"acme/app=x", "https://github.com/acme/app.git=y"}, ""); !isMistake(err) {
		t.Errorf("two entries for one source: %v", err)
	}
}

// A directory with charts, or one chart, stands in for a chart repository.
func TestSourceMapOfCharts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "redis"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "redis", "Chart.yaml"), []byte("name: redis\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := appconfig.Source{Block: appconfig.BlockComponent, Name: "cache", Kind: appconfig.SourceChart, Repo: "oci://registry.example.com/charts", Directory: "redis", Ref: "^20"}
	var digests []string
	for _, entry := range []string{"oci://registry.example.com/charts=" + dir, "registry.example.com/charts//redis=" + filepath.Join(dir, "redis")} {
		mapped, err := ReadSourceMap([]string{entry}, "")
		if err != nil {
			t.Fatal(err)
		}
		archives, named, err := packSources(os.DirFS(t.TempDir()), []appconfig.Source{src}, mapped, io.Discard)
		if err != nil || len(archives) != 1 || len(named) != 1 || !named[0].Mapped || named[0].Component != "cache" {
			t.Fatalf("%s: %+v, %v", entry, named, err)
		}
		digests = append(digests, named[0].Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("one chart by two entries has the digests %q", digests)
	}
	if archives, named, err := packSources(os.DirFS(t.TempDir()), []appconfig.Source{src}, nil, io.Discard); err != nil || len(archives)+len(named) != 0 {
		t.Errorf("without an entry: %+v, %v", named, err)
	}
}
