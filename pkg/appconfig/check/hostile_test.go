//go:build !race

package check_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
)

// What one hostile folder may cost: far below what it would without limits. The
// race detector would multiply both.
const (
	hostileTime   = 10 * time.Second // of all cores together, so a busy machine does not count
	hostileMemory = 1 << 30          // bytes allocated, most of them garbage at once
)

// TestHostileFolders holds that no folder costs more than it should, and that
// each is refused with the limit or rule that it breaks.
func TestHostileFolders(t *testing.T) {
	if testing.Short() {
		t.Skip("writes many files")
	}
	component := func(contents string) func(*testing.T) fs.FS {
		return func(*testing.T) fs.FS { return appconfigtest.Folder(map[string]string{"components/a.toml": contents}) }
	}
	tests := []struct {
		name string
		make func(*testing.T) fs.FS
		want string // what is said; "" when nothing is
	}{
		{"symlink to a file outside", func(t *testing.T) fs.FS {
			return onDisk(t, map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./out.tfvars\"")}, map[string]string{"components/out.tfvars": "/etc/passwd"})
		}, "components/a.toml:5:1 error contents: file \"./out.tfvars\": leaves the app folder"},
		{"symlinked definition", func(t *testing.T) fs.FS { return onDisk(t, nil, map[string]string{"components/a.toml": "/etc/passwd"}) },
			"components/a.toml error leaves the app folder"},
		{"symlinked folder of definitions", func(t *testing.T) fs.FS { return onDisk(t, nil, map[string]string{"components": "/etc"}) }, "components error is a symlink that leaves the app folder"},
		{"symlinks in a circle", func(t *testing.T) fs.FS {
			return onDisk(t, map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./x\"")}, map[string]string{"components/x": "y", "components/y": "x"})
		}, "goes through too many symlinks"},
		{"symlinked module", func(t *testing.T) fs.FS {
			return onDisk(t, map[string]string{"components/a.toml": strings.Replace(appconfigtest.Module("a"), "src/base", "src/etc", 1)}, map[string]string{"src/etc": "/etc"})
		}, "is not a directory of the app folder"},
		{"dots", component(appconfigtest.Module("a", "[[var_file]]\ncontents = \"./../../../../etc/passwd\"")), "leaves the app folder"},
		{"merged file outside", component(appconfigtest.Module("a", "source = \"../../x.toml\"")), "leaves the app folder"},
		{"symlinked device", func(t *testing.T) fs.FS {
			fsys := onDisk(t, map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./pipe\"")}, map[string]string{"components/pipe": "/dev/zero"})
			return fsys
		}, "leaves the app folder"},
		{"a file of 1 GiB", func(t *testing.T) fs.FS {
			return sparse(t, map[string]string{"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./big.tfvars\"")}, "components/big.tfvars", 1<<30)
		}, "is larger than 4 MiB"},
		{"a definition of 1 GiB", func(t *testing.T) fs.FS { return sparse(t, nil, "components/big.toml", 1<<30) }, "is larger than 4 MiB"},
		{"a module of 1 GiB", func(t *testing.T) fs.FS { return sparse(t, nil, "src/base/big.tf", 1<<30) }, ""},
		{"100,000 files", func(t *testing.T) fs.FS {
			files := map[string]string{}
			for i := range 100_000 {
				files[fmt.Sprintf("components/%d/%d.toml", i/1000, i)] = "#"
			}
			return onDisk(t, files, nil)
		}, "has more than 10000 files"},
		{"100,000 files in the root", func(*testing.T) fs.FS {
			fsys := appconfigtest.Folder()
			for i := range 100_000 {
				fsys[fmt.Sprintf("%d.toml", i)] = &fstest.MapFile{}
			}
			return fsys
		}, "has more than 10000 files"},
		{"folders inside each other", func(t *testing.T) fs.FS {
			return onDisk(t, map[string]string{"components/" + strings.Repeat("d/", 1500) + "a.toml": appconfigtest.Module("a", "dependencies = [\"gone\"]")}, nil)
		}, "component \"gone\" does not exist"},
		{"huge array", component("x = [" + strings.Repeat("1,", 1<<20) + "]"), "more than 10000 keys"},
		{"arrays inside each other", component("x = " + strings.Repeat("[", 1<<20)), "arrays and inline tables are nested"},
		{"tables inside each other", component("x = " + strings.Repeat("{a = ", 1<<18)), "arrays and inline tables are nested"},
		{"dotted keys", component("x" + strings.Repeat(".a", 1<<20) + " = 1"), "nests them deeper than 32"},
		{"a million keys", component(keys(350_000)), "more than 10000 keys"},
		{"many unknown keys in many files", func(*testing.T) fs.FS {
			fsys := appconfigtest.Folder()
			for i := range 6 {
				fsys[fmt.Sprintf("components/%d.toml", i)] = &fstest.MapFile{Data: []byte(keys(9_500))}
			}
			return fsys
		}, "the app folder has more than 50000 keys"},
		{"long line", component("name = \"" + strings.Repeat("a", 4<<20-100) + "\""), "may have letters"},
		{"long key", component(strings.Repeat("a", 4<<20-100) + " = 1"), "unknown key"},
		{"many wrong names", func(*testing.T) fs.FS {
			fsys := appconfigtest.Folder()
			for i := range 2_000 {
				name := fmt.Sprintf("%060d", i)
				fsys["components/"+name+".toml"] = &fstest.MapFile{Data: []byte(appconfigtest.Module(name, "dependencies = [\""+strings.Repeat("x", 60)+name+"\"]"))}
			}
			return fsys
		}, "does not exist"},
		{"everything needs everything", func(*testing.T) fs.FS {
			fsys := appconfigtest.Folder()
			for i := range 200 {
				var deps []string
				for j := range 200 {
					deps = append(deps, fmt.Sprintf("\"c%d\"", j))
				}
				fsys[fmt.Sprintf("components/%d.toml", i)] = &fstest.MapFile{Data: []byte(appconfigtest.Module(fmt.Sprintf("c%d", i), "dependencies = ["+strings.Join(deps, ",")+"]"))}
			}
			return fsys
		}, "wait for each other"},
		{"template bomb", component(appconfigtest.Module("a", "[vars]\nx = \""+strings.Repeat("{{ if .nuon.id }}", 50_000)+"\"")), "template does not parse"},
		{"many templates", component(appconfigtest.Module("a", "[vars]\nx = \""+strings.Repeat("{{ .nuon.id }}", 80_000)+"\"")), "template does not parse"},
		{"templates that call each other", component(appconfigtest.Module("a", "[vars]\nx = '''"+callBomb(40)+"'''")), "names are computed"},
		{"braces of another language", component(appconfigtest.Module("a", "[vars]\nx = \"{{ .nuon.id }}"+strings.Repeat("{{ a ", 500_000)+"\"")), "template does not parse"},
		{"YAML aliases", component("name = \"h\"\ntype = \"helm_chart\"\nchart_name = \"h\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\ncontents = '''\n" + aliasBomb(30) + "'''\n"),
			"contents is not valid YAML: document contains excessive aliasing"},
		{"YAML inside each other", component("name = \"h\"\ntype = \"helm_chart\"\nchart_name = \"h\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\ncontents = '''\na: " + strings.Repeat("[", 1<<20-100) + "'''\n"),
			"contents is not valid YAML"},
		{"much YAML", func(*testing.T) fs.FS {
			fsys := appconfigtest.Folder()
			for i := range 15 {
				fsys[fmt.Sprintf("components/%d.yaml", i)] = &fstest.MapFile{Data: []byte("a: [" + strings.Repeat("1,", 1<<19-10) + "]")}
				fsys[fmt.Sprintf("components/%d.toml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil,
					"name = \"h%d\"\ntype = \"helm_chart\"\nchart_name = \"h\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\ncontents = \"./%d.yaml\"\n", i, i)}
			}
			return fsys
		}, "11 texts of YAML or JSON are not checked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { // one after the other: memory is measured
			fsys := tt.make(t)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := cpuTime(t)
			_, diags := check.Folder(fsys, appconfig.LoadOptions{})
			took := cpuTime(t) - start
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s, %d MiB allocated, %d diagnostics", took.Round(time.Millisecond), allocated>>20, len(diags))
			got := appconfigtest.Render(diags)
			switch {
			case tt.want == "" && len(diags) > 0:
				t.Errorf("got %s, want nothing", shortened(got))
			case !strings.Contains(got, tt.want):
				t.Errorf("got %s, want %q", shortened(got), tt.want)
			}
			if took > hostileTime || allocated > hostileMemory {
				t.Errorf("it took %s and %d MiB", took, allocated>>20)
			}
		})
	}
}

func shortened(s string) string { return s[:min(len(s), 2000)] }

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	return b.String()
}

// callBomb is a template whose n definitions each call the next one twice.
func callBomb(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{{ define \"t%d\" }}{{ template \"t%d\" . }}{{ template \"t%d\" . }}{{ end }}\n", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "{{ define \"t%d\" }}{{ .nuon.id }}{{ end }}{{ template \"t0\" . }}", n)
	return b.String()
}

// aliasBomb is YAML in which each of n lists has the one before nine times.
func aliasBomb(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	return b.String()
}

// onDisk writes the minimal folder with more files and symlinks.
func onDisk(t *testing.T, files, links map[string]string) fs.FS {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	made := map[string]bool{}
	for _, set := range []map[string]string{appconfigtest.Minimal, files} {
		for name, contents := range set {
			if parent := filepath.Dir(name); !made[parent] {
				made[parent] = true
				if err := root.MkdirAll(parent, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := root.WriteFile(name, []byte(contents), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, target := range links {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		appconfigtest.Symlink(t, target, filepath.Join(dir, name))
	}
	return os.DirFS(dir)
}

// sparse is onDisk with one large file that takes no place.
func sparse(t *testing.T, files map[string]string, name string, size int64) fs.FS {
	t.Helper()
	with := map[string]string{name: ""}
	for file, contents := range files {
		with[file] = contents
	}
	fsys := onDisk(t, with, nil)
	if err := os.Truncate(filepath.Join(fmt.Sprint(fsys), name), size); err != nil {
		t.Fatal(err)
	}
	return fsys
}
