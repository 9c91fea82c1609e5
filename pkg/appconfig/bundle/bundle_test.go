package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestBundleRoundTrip(t *testing.T) {
	t.Parallel()
	fsys := appconfigtest.Folder(map[string]string{
		"components/deep/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \"./a.tfvars\""),
		"components/a.tfvars":    "x = 1\n",
		"components/unused.txt":  "stays behind",
		"permissions/p.toml":     "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n",
	})
	made, err := bundle.Make(fsys, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fsys {
		f.ModTime = time.Now()
	}
	again, _ := bundle.Make(fsys, nil)
	if diff := cmp.Diff(made, again); diff != "" {
		t.Errorf("the same folder gave another bundle (-first +second):\n%s", diff)
	}
	opened, err := bundle.Open(appconfigtest.Archives(made)...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	_ = fs.WalkDir(opened, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	want := []string{"components/a.tfvars", "components/deep/a.toml", "metadata.toml", "permissions/p.toml", "runner.toml", "sandbox.toml", "stack.toml"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := fstest.TestFS(opened, want...); err != nil {
		t.Error(err)
	}
	here, hereDiags := appconfig.Load(fsys, appconfig.LoadOptions{})
	there, thereDiags := appconfig.Load(opened, appconfig.LoadOptions{SkipSources: true})
	a, _ := json.Marshal(here)
	b, _ := json.Marshal(there)
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("app from the bundle (-folder +bundle):\n%s", diff)
	}
	if diff := cmp.Diff(hereDiags, thereDiags); diff != "" {
		t.Errorf("diagnostics from the bundle (-folder +bundle):\n%s", diff)
	}
}

func TestBundleRefusesErrors(t *testing.T) {
	t.Parallel()
	if _, err := bundle.Make(appconfigtest.Folder(map[string]string{"stack.toml": ""}), nil); err == nil {
		t.Error("a folder with errors was bundled")
	}
}

func TestOpenBundleRefuses(t *testing.T) {
	t.Parallel()
	file := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	tests := []struct {
		name    string
		headers []*tar.Header
		want    string
	}{
		{"a path up", []*tar.Header{file("../x.toml")}, "unsafe name"},
		{"an absolute path", []*tar.Header{file("/etc/x.toml")}, "unsafe name"},
		{"a backslash", []*tar.Header{file(`a\..\x`)}, "unsafe name"},
		{"a symlink", []*tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "not a regular file"},
		{"a name twice", []*tar.Header{file("x.toml"), file("x.toml")}, "twice"},
		{"a large file", []*tar.Header{{Name: "x", Typeflag: tar.TypeReg, Size: folder.MaxFileBytes + 1}}, "larger than 4 MiB"},
	}
	for _, tt := range tests {
		_, err := bundle.Open(pack(t, tt.headers))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	var many, large []*tar.Header
	for i := range folder.MaxFiles + 1 {
		many = append(many, file(fmt.Sprint(i)))
	}
	for i := range folder.MaxBytes/folder.MaxFileBytes + 1 {
		large = append(large, &tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, Size: folder.MaxFileBytes})
	}
	if _, err := bundle.Open(pack(t, many)); err == nil || !strings.Contains(err.Error(), "more than 10000 files") {
		t.Errorf("many files: got %v", err)
	}
	bomb := pack(t, large)
	if _, err := bundle.Open(bomb); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("a bomb of %d bytes: got %v", len(bomb), err)
	}
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "half": bomb[:len(bomb)/2]} {
		if _, err := bundle.Open(data); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

// pack writes a tar.gz with the headers and zeros for contents.
func pack(t *testing.T, headers []*tar.Header) []byte {
	t.Helper()
	zeros := make([]byte, folder.MaxFileBytes+1)
	return archive(t, func(w *tar.Writer) error {
		for _, h := range headers {
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			if _, err := w.Write(zeros[:h.Size]); err != nil {
				return err
			}
		}
		return nil
	})
}

// archive is a tar.gz of what fill writes.
func archive(t *testing.T, fill func(*tar.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	if err := errors.Join(fill(w), w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSourceArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := filepath.Join(dir, "src/mod")
	for _, name := range []string{
		"main.tf", "run.sh", "files/a.txt", ".terraform.lock.hcl", ".terraform/providers/x", ".git/HEAD", "terraform.tfstate",
		"terraform.tfstate.backup", "x.tfplan",
	} {
		appconfigtest.WriteFile(t, filepath.Join(src, name), name)
	}
	if err := os.Chmod(filepath.Join(src, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	appconfigtest.Symlink(t, "../main.tf", filepath.Join(src, "files/link.tf"))
	archive, digest, err := bundle.ArchiveDirectory(os.DirFS(dir), "./src/mod/")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-rw-r--r-- .terraform.lock.hcl", "drwxr-xr-x files/", "-rw-r--r-- files/a.txt", "Lrwxrwxrwx files/link.tf → ../main.tf",
		"-rw-r--r-- main.tf", "-rwxr-xr-x run.sh",
	}
	if diff := cmp.Diff(want, list(t, archive)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(src, "main.tf"), past, past); err != nil {
		t.Fatal(err)
	}
	appconfigtest.WriteFile(t, filepath.Join(src, "terraform.tfstate"), "other state")
	if _, again, _ := bundle.ArchiveDirectory(os.DirFS(dir), "src/mod"); again != digest {
		t.Error("a time and a state file changed the digest")
	}
	appconfigtest.WriteFile(t, filepath.Join(src, "main.tf"), "changed")
	if _, again, _ := bundle.ArchiveDirectory(os.DirFS(dir), "src/mod"); again == digest {
		t.Error("a changed file did not change the digest")
	}
}

func TestSourceArchiveRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, link, want string }{
		{"absolute", "/etc/passwd", "leaves the source"},
		{"up and out", "../../outside", "leaves the source"},
		{"up after a name", "d/../../../outside", "goes up after a name"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		appconfigtest.WriteFile(t, filepath.Join(dir, "app/src/main.tf"), "")
		appconfigtest.Symlink(t, tt.link, filepath.Join(dir, "app/src/link"))
		_, _, err := bundle.ArchiveDirectory(os.DirFS(filepath.Join(dir, "app")), "src")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	dir := t.TempDir()
	appconfigtest.WriteFile(t, filepath.Join(dir, "outside/main.tf"), "")
	appconfigtest.WriteFile(t, filepath.Join(dir, "app/file"), "")
	appconfigtest.Symlink(t, "../outside", filepath.Join(dir, "app/src"))
	for _, src := range []string{"src", "../outside", "/etc", "gone", "file"} {
		if _, _, err := bundle.ArchiveDirectory(os.DirFS(filepath.Join(dir, "app")), src); err == nil {
			t.Errorf("source %q was packed", src)
		}
	}
}

func list(t *testing.T, archive []byte) []string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		entry := fmt.Sprintf("%s %s", h.FileInfo().Mode(), h.Name)
		if h.Linkname != "" {
			entry += " → " + h.Linkname
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Uname != "" {
			entry += " has a time or an owner"
		}
		entries = append(entries, entry)
	}
}

// TestInstallsStayAtHome holds that what is set for one install is not uploaded
// with the app, and is refused where it would be.
func TestInstallsStayAtHome(t *testing.T) {
	t.Parallel()
	const inputs = "[[group]]\nname = \"g\"\ndisplay_name = \"G\"\ndescription = \"G\"\n[[input]]\nname = \"key\"\ndisplay_name = \"K\"\ndescription = \"K\"\ngroup = \"g\"\nsensitive = true\n"
	const install = "name = \"acme\"\nsource = \"./more.txt\"\n[inputs]\nkey = \"only acme knows\"\n"
	root := appconfigtest.Folder(map[string]string{
		"inputs.toml": inputs, "installs/acme.toml": install, "installs/more.txt": "[labels]\nring = \"only acme knows\"\n",
	})
	app, diags := check.Folder(root, appconfig.LoadOptions{})
	if place.HasErrors(diags) || len(app.Installs) != 1 || app.Installs[0].Labels["ring"] == "" {
		t.Fatalf("installs %+v, diagnostics:\n%s", app.Installs, appconfigtest.Render(diags))
	}
	made, err := bundle.Make(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := bundle.Open(appconfigtest.Archives(made)...)
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(opened, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(opened, name)
		if strings.Contains(string(text), "only acme knows") {
			t.Errorf("%s is in the bundle:\n%s", name, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	uploaded, _ := appconfig.Load(opened, appconfig.LoadOptions{})
	if uploaded.Digest() != app.Digest() {
		t.Error("the app is another one in its bundle")
	}

	app.Installs[0].At.File = "nuon.app.toml" // as the one-file form has it
	if refused := check.Unsupported(app); !place.HasErrors(refused) || !strings.Contains(appconfigtest.Render(refused), `sets the sensitive input "key"`) {
		t.Errorf("got:\n%s", appconfigtest.Render(refused))
	}
}
