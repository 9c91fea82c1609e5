package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/toolchain"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

// script is enough of a Terraform to tell its version.
func script(version string) string {
	return "#!/bin/sh\necho '{\"terraform_version\":\"" + version + "\"}'\n"
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	toolchaintest.Write(t, path, []byte(text), mode)
}

// release publishes a version that tells nothing but its own.
func release(t *testing.T, v toolchaintest.Vendor, dir, version string) {
	t.Helper()
	v.Release(t, dir, version, []byte(script(version)))
}

func digest(t *testing.T, path string) string {
	t.Helper()
	d, err := (&order.Digests{}).Of(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// published is a site with a release, and a box that trusts it.
func published(t *testing.T, version string) (dir string, cfg toolchain.Config, asked *atomic.Int64) {
	t.Helper()
	v := toolchaintest.NewVendor(t)
	dir, asked = t.TempDir(), &atomic.Int64{}
	release(t, v, filepath.Join(dir, version), version)
	files := http.FileServer(http.Dir(dir))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	return dir, toolchain.Config{Downloads: true, Site: site.URL, Key: v.Key, Dir: t.TempDir(), Client: site.Client()}, asked
}

func TestFetch(t *testing.T) {
	t.Parallel()
	const version = "1.9.8"
	archive, sums := tfprogram.Terraform.ArchiveName(version), tfprogram.Terraform.SumsName(version)
	for _, tc := range []struct {
		name    string
		spoil   func(t *testing.T, dir string, cfg *toolchain.Config)
		want    string // of the error; empty: it is there
		is      error
		version string
	}{
		{name: "a release"},
		{name: "signed by somebody else", want: sums, is: tfprogram.ErrUntrusted, spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			release(t, toolchaintest.NewVendor(t), dir, version)
		}},
		{name: "the signature of another list", want: sums, is: tfprogram.ErrUntrusted, spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			raw, err := os.ReadFile(filepath.Join(dir, sums))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, sums), string(raw)+"0  other\n", 0o644)
		}},
		{name: "another archive", want: "sha256 is", is: tfprogram.ErrUntrusted, spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			write(t, filepath.Join(dir, archive), "another", 0o644)
		}},
		{name: "half of it", want: "sha256 is", is: tfprogram.ErrUntrusted, spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			if err := os.Truncate(filepath.Join(dir, archive), 40); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "no archive for this machine", want: "404", spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			if err := os.Remove(filepath.Join(dir, archive)); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "no signature", want: "has no release of this version", is: toolchain.ErrNone, spoil: func(t *testing.T, dir string, _ *toolchain.Config) {
			if err := os.Remove(filepath.Join(dir, sums+".sig")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a version that there never was", version: "1.9.99", want: "terraform 1.9.99 could not be fetched", is: toolchain.ErrNone},
		{name: "the site is away", want: "connection refused", spoil: func(_ *testing.T, _ string, cfg *toolchain.Config) {
			cfg.Site = "http://127.0.0.1:1"
		}},
		{name: "downloads are forbidden", want: "no terraform 1.9.8 is on this runner", is: toolchain.ErrNone, spoil: func(_ *testing.T, _ string, cfg *toolchain.Config) {
			cfg.Downloads = false
		}},
		{name: "a key that is none", want: "read public key", is: tfprogram.ErrUntrusted, spoil: func(_ *testing.T, _ string, cfg *toolchain.Config) {
			cfg.Key = "none"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, cfg, asked := published(t, version)
			if tc.spoil != nil {
				tc.spoil(t, filepath.Join(dir, version), &cfg)
			}
			want := version
			if tc.version != "" {
				want = tc.version
			}
			box := toolchain.New(cfg, &order.Digests{})
			path, err := box.For(t.Context(), want)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("got %v, want an error with %q that is %v", err, tc.want, tc.is)
				}
				if left, _ := filepath.Glob(filepath.Join(cfg.Dir, "terraform", "*", "*")); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
				return
			}
			if err != nil || path != filepath.Join(cfg.Dir, "terraform", version, "terraform") {
				t.Fatalf("got %s, %v", path, err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != script(version) {
				t.Errorf("it is %q, %v", text, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("mode %v, %v; want 0755", info.Mode(), err)
			}
			before := asked.Load()
			if again, err := box.For(t.Context(), want); err != nil || again != path || asked.Load() != before {
				t.Errorf("again: %s, %v, with %d requests; want the same with none", again, err, asked.Load()-before)
			}
		})
	}
}

// Jobs that need the same version at once fetch it once, and what a killed agent left
// half done is not taken for whole, nor left for ever.
func TestFetchAtOnce(t *testing.T) {
	t.Parallel()
	_, cfg, asked := published(t, "1.9.8")
	half := filepath.Join(cfg.Dir, "terraform", "1.9.8", ".terraform.123")
	write(t, half, "#!/bin/f", 0o600)
	box := toolchain.New(cfg, &order.Digests{})
	var jobs sync.WaitGroup
	for range 8 {
		jobs.Go(func() {
			path, err := box.For(t.Context(), "1.9.8")
			if text, _ := os.ReadFile(path); err != nil || string(text) != script("1.9.8") {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	jobs.Wait()
	if asked.Load() != 3 {
		t.Errorf("the site was asked %d times, want 3", asked.Load())
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was half done is left: %v", err)
	}
}

// A job that was cancelled waits for nobody's download.
func TestFetchIsGivenUp(t *testing.T) {
	t.Parallel()
	v, begun, end := toolchaintest.NewVendor(t), make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-end
	}))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(end) }) // before the site closes
	box := toolchain.New(toolchain.Config{Downloads: true, Site: site.URL, Key: v.Key, Dir: t.TempDir()}, &order.Digests{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = box.For(t.Context(), "1.9.8") }()
	<-begun
	cancel()
	if _, err := box.For(ctx, "1.9.7"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
}

// The forms that a mirror directory may have, and the other sources.
func TestSources(t *testing.T) {
	t.Parallel()
	v := toolchaintest.NewVendor(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("unpacked/1.5.7/terraform"), script("1.5.7"), 0o755)
	write(t, at("unpacked/1.5.8/terraform"), "no program", 0o644)
	write(t, at("unpacked/readme"), "", 0o644)
	release(t, v, at("site/terraform/1.6.6"), "1.6.6")
	release(t, v, at("flat"), "1.7.5")
	release(t, toolchaintest.NewVendor(t), at("foreign"), "1.7.5")
	write(t, at("path/terraform"), script("1.8.5"), 0o755)
	write(t, at("silent/terraform"), "#!/bin/sh\nexit 1\n", 0o755)
	write(t, at("named"), script("1.9.5"), 0o755)
	for _, tc := range []struct {
		name, want, mirror, path string
		copied                   bool
		got                      string // below dir, or "kept:…" below Dir
		err                      string
	}{
		{name: "unpacked", want: "1.5.7", mirror: "unpacked", got: "unpacked/1.5.7/terraform"},
		{name: "unpacked, copied for pods", want: "1.5.7", mirror: "unpacked", copied: true, got: "kept:copies/" + strings.TrimPrefix(digest(t, at("unpacked/1.5.7/terraform")), "sha256:") + "/terraform"},
		{name: "not executable", want: "1.5.8", mirror: "unpacked", err: "no terraform 1.5.8 is on this runner, which has 1.9.5, 1.5.7; downloads are forbidden"},
		{name: "as the vendor's site", want: "1.6.6", mirror: "site", got: "kept:terraform/1.6.6/terraform"},
		{name: "all in one directory", want: "1.7.5", mirror: "flat", got: "kept:terraform/1.7.5/terraform"},
		{name: "signed by somebody else", want: "1.7.5", mirror: "foreign", err: "not what the vendor signed"},
		{name: "PATH", want: "1.8.5", path: "path", got: "path/terraform"},
		{name: "one that tells nothing", want: "1.8.5", path: "silent", err: "which has 1.9.5;"},
		{name: "a range", want: "~> 1.8.0", path: "path", got: "path/terraform"},
		{name: "nothing wanted", want: "", path: "path", mirror: "unpacked", got: "named"},
		{name: "a mirror that is gone", want: "1.5.7", mirror: "nowhere", err: "no such file or directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := toolchain.Config{Named: at("named"), Dir: t.TempDir(), Key: v.Key, Copy: tc.copied}
			if tc.mirror != "" {
				cfg.Mirror = at(tc.mirror)
			}
			if tc.path != "" {
				cfg.SearchPath = at(tc.path) + ":/nowhere"
			}
			box := toolchain.New(cfg, &order.Digests{})
			for range 2 {
				path, err := box.For(t.Context(), tc.want)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("got %q, %v; want an error with %q", path, err, tc.err)
					}
					continue
				}
				want := at(tc.got)
				if below, ok := strings.CutPrefix(tc.got, "kept:"); ok {
					want = filepath.Join(cfg.Dir, below)
				}
				if err != nil || path != want {
					t.Errorf("got %q, %v; want %q", path, err, want)
				}
			}
		})
	}
}

// A mirror that is a site stands in for the vendor's.
func TestMirrorSite(t *testing.T) {
	t.Parallel()
	_, cfg, _ := published(t, "1.9.8")
	cfg.Mirror, cfg.Site = cfg.Site+"/", "http://127.0.0.1:1"
	if path, err := toolchain.New(cfg, &order.Digests{}).For(t.Context(), "1.9.8"); err != nil || path == "" {
		t.Errorf("got %q, %v", path, err)
	}
}

// An apply gets the very file of its plan, wherever it is now, and never another one.
func TestPinned(t *testing.T) {
	t.Parallel()
	dir, cfg, _ := published(t, "1.9.8")
	cfg.Named = filepath.Join(dir, "named")
	write(t, cfg.Named, script("1.9.8"), 0o755) // the same bytes as the release
	build := filepath.Join(dir, "mirror", "1.9.8", "terraform")
	write(t, build, script("1.9.8")+"# a build of somebody's\n", 0o755)
	cfg.Mirror = filepath.Join(dir, "mirror")
	box := toolchain.New(cfg, &order.Digests{})
	find := func(digest, want, wantErr string) {
		t.Helper()
		path, err := box.Pinned(t.Context(), "1.9.8", digest)
		switch {
		case wantErr != "" && (!errors.Is(err, toolchain.ErrGone) || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("got %q, %v; want %q", path, err, wantErr)
		case wantErr == "" && (err != nil || path != want):
			t.Errorf("got %q, %v; want %q", path, err, want)
		}
	}
	release, other := digest(t, cfg.Named), digest(t, build)
	find(release, cfg.Named, "")
	find(other, build, "")
	write(t, cfg.Named, script("1.9.8")+"# replaced\n", 0o755)
	find(release, filepath.Join(cfg.Dir, "terraform", "1.9.8", "terraform"), "") // fetched again
	if err := os.RemoveAll(cfg.Mirror); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(cfg.Mirror, "1.5.7", "terraform"), script("1.5.7"), 0o755)
	find(other, "", fmt.Sprintf("1.9.8 with digest %s is nowhere on this runner", other))
}
