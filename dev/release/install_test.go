package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/releaselist"
)

const version = "1.4.0-rc.1+build"

func platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

func archiveName() string { return "berth_" + version + "_" + platform() + ".tar.gz" }

// aRelease makes a release of small files, signed with a new key.
func aRelease(t *testing.T) options {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := options{
		executables: filepath.Join(dir, "build"), tree: filepath.Join(dir, "tree"), images: filepath.Join(dir, "images"),
		version: version, commit: "abcdef", created: time.Unix(1_700_000_000, 0).UTC(), key: key, out: filepath.Join(dir, "out"),
		terms: func([]string) ([]byte, error) { return []byte("terms of others"), nil },
	}
	put(t, filepath.Join(o.executables, platform(), "berth"), "#!/bin/sh\necho berth ran\n", 0o755)
	for _, name := range ofRunners {
		put(t, filepath.Join(o.executables, platform(), name), "#!/bin/sh\necho "+name+" ran\n", 0o755)
	}
	put(t, filepath.Join(o.tree, "LICENSE"), "a license", 0o644)
	put(t, filepath.Join(o.tree, "CHANGELOG.md"), "changes", 0o644)
	put(t, filepath.Join(o.tree, "examples/hello/metadata.toml"), "app", 0o644)
	put(t, o.images, "runner sha256:22\nbuilder sha256:11\n", 0o644)
	if err := o.make(); err != nil {
		t.Fatal(err)
	}
	return o
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// install runs the script and returns what it wrote.
func install(t *testing.T, script string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{script}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRelease(t *testing.T) {
	t.Parallel()
	o := aRelease(t)
	raw, err := os.ReadFile(filepath.Join(o.out, "release.json"))
	if err != nil {
		t.Fatal(err)
	}
	public := o.key.Public().(ed25519.PublicKey)
	list, err := releaselist.Verify(raw, map[string]ed25519.PublicKey{capsule.KeyID(public): public})
	if err != nil {
		t.Fatal(err)
	}
	good, err := list.Check(o.out)
	if diff := cmp.Diff([]string{releaselist.RunnerArchive(version, platform()), archiveName(), "install.sh"}, good); err != nil || diff != "" {
		t.Errorf("files: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]releaselist.Image{{Name: "builder", Digest: "sha256:11"}, {Name: "runner", Digest: "sha256:22"}}, list.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	check.Dir = o.out
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}

	again := o
	again.out = filepath.Join(t.TempDir(), "again")
	if err := again.make(); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(filepath.Join(again.out, "release.json")); err != nil || !bytes.Equal(raw, second) {
		t.Errorf("the same input made another release: %v", err)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	o := aRelease(t)
	site := httptest.NewServer(http.StripPrefix("/berth", http.FileServer(http.Dir(o.out))))
	t.Cleanup(site.Close)
	for _, from := range []string{o.out, site.URL + "/berth"} {
		to := filepath.Join(t.TempDir(), "a folder")
		script := filepath.Join(o.out, "install.sh")
		out, err := install(t, script, "--from", from, "--to", to, "--version", version)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		ran, err := exec.CommandContext(t.Context(), filepath.Join(to, "current", "bin", "berth")).Output()
		if err != nil || string(ran) != "berth ran\n" {
			t.Errorf("%s: %q, %v", from, ran, err)
		}
		if _, err := os.Stat(filepath.Join(to, "current", "examples", "hello", "metadata.toml")); err != nil {
			t.Error(err)
		}
		if out, err := install(t, script, "--from", from, "--to", to); err != nil {
			t.Errorf("again: %v\n%s", err, out)
		}
		wantOnly(t, to, version, "current")
	}
}

func wantOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", dir, diff)
	}
}

// TestInstallRefuses attacks a release between its maker and the script. Each
// attacker can write what is published, and has no key; the last ones are
// mistakes of the maker, who has it.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	change := func(name string, edit func([]byte) []byte) func(*testing.T, options) {
		return func(t *testing.T, o options) {
			t.Helper()
			path := filepath.Join(o.out, name)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, string(edit(raw)), 0o644)
		}
	}
	payload := func(edit func(string) string) func(*testing.T, options) {
		return change("release.json", func(raw []byte) []byte {
			var envelope struct {
				PayloadType string              `json:"payloadType"`
				Payload     []byte              `json:"payload"`
				Signatures  []capsule.Signature `json:"signatures"`
			}
			if err := json.Unmarshal(raw, &envelope); err != nil {
				t.Error(err)
			}
			envelope.Payload = []byte(edit(string(envelope.Payload)))
			out, err := json.Marshal(envelope)
			if err != nil {
				t.Error(err)
			}
			return append(out, '\n')
		})
	}
	for _, tc := range []struct {
		name   string
		attack func(*testing.T, options)
		args   []string
		want   string
	}{
		{
			name: "a changed archive", want: "not what was signed",
			attack: change(archiveName(), func(raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw }),
		},
		{
			name: "half an archive", want: "not what was signed",
			attack: change(archiveName(), func(raw []byte) []byte { return raw[:len(raw)/2] }),
		},
		{
			name: "no archive", want: "has no " + archiveName(),
			attack: func(t *testing.T, o options) { remove(t, filepath.Join(o.out, archiveName())) },
		},
		{
			name: "a changed list", want: "not signed with the key",
			attack: payload(func(s string) string { return strings.Replace(s, `"sha256":"`, `"sha256":"0`, 1) }),
		},
		{
			name: "another version in the list", want: "not signed with the key",
			attack: payload(func(s string) string { return strings.Replace(s, version+`"}`, `9.9.9"}`, 1) }),
		},
		{
			name: "a list with something behind it", want: "not a signed list",
			attack: change("release.json", func(raw []byte) []byte { return append(raw, []byte("{}\n")...) }),
		},
		{
			name: "a list of another kind", want: "not a signed list",
			attack: change("release.json", func(raw []byte) []byte { return bytes.Replace(raw, []byte("release.v1"), []byte("order.v1"), 1) }),
		},
		{
			name: "signed by somebody else", want: "not signed with the key",
			attack: func(t *testing.T, o options) {
				t.Helper()
				script, err := os.ReadFile(filepath.Join(o.out, "install.sh"))
				if err != nil {
					t.Fatal(err)
				}
				if _, o.key, err = capsule.GenerateKey(); err != nil {
					t.Fatal(err)
				}
				if err := o.make(); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(o.out, "install.sh"), string(script), 0o755) // people have the true one
			},
		},
		{
			name: "an older release", args: []string{"--version", "1.5.0"}, want: "this is version " + version + ", not 1.5.0",
			attack: func(*testing.T, options) {},
		},
		{
			name: "no entry for this machine", want: "the list has no " + archiveName(),
			attack: func(t *testing.T, o options) { remove(t, filepath.Join(o.out, archiveName())); resign(t, o) },
		},
		{
			name: "a path out of the folder, signed", want: "lead out of its folder",
			attack: packed(tar.Header{Typeflag: tar.TypeReg, Name: "berth_" + version + "_" + platform() + "/../../evil", Mode: 0o644}),
		},
		{
			name: "an absolute path, signed", want: "lead out of its folder",
			attack: packed(tar.Header{Typeflag: tar.TypeReg, Name: "/tmp/evil", Mode: 0o644}),
		},
		{
			name: "a link, signed", want: "links or devices",
			attack: packed(tar.Header{Typeflag: tar.TypeSymlink, Name: "berth_" + version + "_" + platform() + "/bin", Linkname: "/tmp"}),
		},
		{name: "an address without TLS", args: []string{"--from", "http://downloads.example.com"}, want: "only https is safe", attack: func(*testing.T, options) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := aRelease(t)
			tc.attack(t, o)
			to := t.TempDir()
			out, err := install(t, filepath.Join(o.out, "install.sh"), append([]string{"--from", o.out, "--to", to}, tc.args...)...)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("got %v\n%s\nwant it to fail and say %q", err, out, tc.want)
			}
			wantOnly(t, to)
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// resign makes the list of what is in the folder now.
func resign(t *testing.T, o options) {
	t.Helper()
	remove(t, filepath.Join(o.out, "release.json"))
	remove(t, filepath.Join(o.out, "SHA256SUMS"))
	if err := o.sign(o.key.Public().(ed25519.PublicKey)); err != nil {
		t.Fatal(err)
	}
}

// packed puts an archive of one entry in the place of the archive, and signs it.
func packed(header tar.Header) func(*testing.T, options) {
	return func(t *testing.T, o options) {
		t.Helper()
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		w := tar.NewWriter(zipped)
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(o.out, archiveName()), out.String(), 0o644)
		resign(t, o)
	}
}
