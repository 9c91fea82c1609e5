package toolchain_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/berth-dev/berth/cli/internal/toolchain"
)

const version = toolchain.TerraformVersion

// program is what the archives of these tests hold: enough of a Terraform to
// say its version.
const program = "#!/bin/sh\necho '{\"terraform_version\":\"" + version + "\"}'\n"

// A vendor signs releases with a key of its own.
type vendor struct {
	entity *openpgp.Entity
	key    string
}

func newVendor(t *testing.T) vendor {
	t.Helper()
	entity, err := openpgp.NewEntity("Vendor", "", "vendor@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w, err := armor.Encode(&buf, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.Serialize(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return vendor{entity: entity, key: buf.String()}
}

// publish writes archive, list and signature of a version into dir.
func (v vendor) publish(t *testing.T, dir, version string) {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	w, err := z.Create("terraform")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	list := fmt.Sprintf("%x  other.zip\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256(archive.Bytes()), archiveName(version))
	var sig bytes.Buffer
	if err := openpgp.DetachSign(&sig, v.entity, strings.NewReader(list), nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, archiveName(version)), archive.Bytes())
	write(t, filepath.Join(dir, "terraform_"+version+"_SHA256SUMS"), []byte(list))
	write(t, filepath.Join(dir, "terraform_"+version+"_SHA256SUMS.sig"), sig.Bytes())
}

func archiveName(version string) string {
	return fmt.Sprintf("terraform_%s_%s_%s.zip", version, runtime.GOOS, runtime.GOARCH)
}

func write(t *testing.T, file string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// script writes a program that answers `version -json`.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "terraform")
	write(t, file, []byte("#!/bin/sh\n"+body+"\n"))
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func notOnPath(string) (string, error) { return "", exec.ErrNotFound }

func TestMirrorIsUsedOnlyWhenTheVendorSignedIt(t *testing.T) {
	t.Parallel()
	v := newVendor(t)
	list := "terraform_" + version + "_SHA256SUMS"
	for _, tc := range []struct {
		name    string
		tamper  func(t *testing.T, dir string)
		wantErr error
	}{
		{name: "as published"},
		{
			name: "plain names of list and signature",
			tamper: func(t *testing.T, dir string) {
				rename(t, dir, list, "SHA256SUMS")
				rename(t, dir, list+".sig", "SHA256SUMS.sig")
			},
		},
		{
			name:    "archive changed",
			tamper:  func(t *testing.T, dir string) { appendTo(t, filepath.Join(dir, archiveName(version)), "x") },
			wantErr: toolchain.ErrUntrusted,
		},
		{
			name:    "list changed",
			tamper:  func(t *testing.T, dir string) { appendTo(t, filepath.Join(dir, list), "\n") },
			wantErr: toolchain.ErrUntrusted,
		},
		{
			name:    "signature cut off",
			tamper:  func(t *testing.T, dir string) { write(t, filepath.Join(dir, list+".sig"), nil) },
			wantErr: toolchain.ErrUntrusted,
		},
		{
			name:    "all of it signed by another",
			tamper:  func(t *testing.T, dir string) { newVendor(t).publish(t, dir, version) },
			wantErr: toolchain.ErrUntrusted,
		},
		{
			name:    "a signed archive under the name of another version",
			tamper:  func(t *testing.T, dir string) { rename(t, dir, archiveName(version), archiveName("9.9.9")) },
			wantErr: toolchain.ErrUnavailable,
		},
		{
			name:    "no signature",
			tamper:  func(t *testing.T, dir string) { remove(t, filepath.Join(dir, list+".sig")) },
			wantErr: toolchain.ErrUnavailable,
		},
		{
			name:    "no archive",
			tamper:  func(t *testing.T, dir string) { remove(t, filepath.Join(dir, archiveName(version))) },
			wantErr: toolchain.ErrUnavailable,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			mirror, cache := t.TempDir(), t.TempDir()
			v.publish(t, mirror, version)
			if tc.tamper != nil {
				tc.tamper(t, mirror)
			}
			path, err := toolchain.EnsureTerraform(t.Context(), toolchain.Options{
				Mirror: mirror, CacheDir: cache, Key: v.key, LookPath: notOnPath,
			})
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error is %v, want %v", err, tc.wantErr)
			}
			if err != nil {
				wantNoFiles(t, cache)
				return
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != program {
				t.Errorf("unpacked %q, %v; want the vendor's program", got, err)
			}
		})
	}
}

func TestMirrorGivesTheNewestWhenThePinnedVersionIsMissing(t *testing.T) {
	t.Parallel()
	v, mirror := newVendor(t), t.TempDir()
	for _, version := range []string{"1.5.0", "1.9.10", "1.10.2"} {
		v.publish(t, mirror, version)
	}
	path, err := toolchain.EnsureTerraform(t.Context(), toolchain.Options{
		Mirror: mirror, CacheDir: t.TempDir(), Key: v.key, LookPath: notOnPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Base(filepath.Dir(path)); got != "1.10.2" {
		t.Errorf("took version %s, want 1.10.2", got)
	}
}

func TestSiteIsAskedOnce(t *testing.T) {
	t.Parallel()
	v, dir := newVendor(t), t.TempDir()
	v.publish(t, filepath.Join(dir, version), version)
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	o := toolchain.Options{Site: site.URL, CacheDir: t.TempDir(), Key: v.key, LookPath: notOnPath}

	first, err := toolchain.EnsureTerraform(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	site.Close()
	second, err := toolchain.EnsureTerraform(t.Context(), o)
	if err != nil || second != first {
		t.Errorf("without the site: %q, %v; want %q from the cache", second, err, first)
	}
}

func TestOfflineNamesTheRemedyInOneLine(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.NotFoundHandler())
	site.Close()
	_, err := toolchain.EnsureTerraform(t.Context(), toolchain.Options{
		Site: site.URL, CacheDir: t.TempDir(), LookPath: notOnPath,
	})
	if !errors.Is(err, toolchain.ErrUnavailable) {
		t.Fatalf("error is %v, want ErrUnavailable", err)
	}
	for _, want := range []string{"BERTH_TERRAFORM", "BERTH_TERRAFORM_MIRROR", archiveName(version)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q has several lines", err)
	}
}

func TestInstalledTerraform(t *testing.T) {
	t.Parallel()
	good := script(t, "echo '{\"terraform_version\":\"1.9.0\"}'")
	old := script(t, "echo '{\"terraform_version\":\"1.3.9\"}'")
	other := script(t, "echo hello")
	onPath := func(path string) func(string) (string, error) {
		return func(string) (string, error) { return path, nil }
	}
	// The mirror is empty: a case that falls through to it fails there.
	for _, tc := range []struct {
		name     string
		binary   string
		lookPath func(string) (string, error)
		want     string
	}{
		{name: "the one that was named wins", binary: good, lookPath: onPath(old), want: good},
		{name: "the one on PATH", lookPath: onPath(good), want: good},
		{name: "the named one is too old", binary: old, lookPath: onPath(good)},
		{name: "the named one is missing", binary: filepath.Join(t.TempDir(), "none"), lookPath: onPath(good)},
		{name: "the named one is another program", binary: other, lookPath: onPath(good)},
		{name: "the one on PATH is too old", lookPath: onPath(old)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := toolchain.EnsureTerraform(t.Context(), toolchain.Options{
				Binary: tc.binary, LookPath: tc.lookPath, Mirror: t.TempDir(), CacheDir: t.TempDir(),
			})
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			if err != nil && !errors.Is(err, toolchain.ErrUnavailable) {
				t.Errorf("error is %v, want ErrUnavailable", err)
			}
		})
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, append(raw, text...))
}

func wantNoFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
