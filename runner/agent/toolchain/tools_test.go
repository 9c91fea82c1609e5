package toolchain_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/toolchain"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

// OpenTofu comes from where its own vendor publishes it, and only what that one signed
// is taken; a module gets the tool that it asks for.
func TestTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	vendor, other := toolchaintest.NewVendor(t), toolchaintest.NewVendor(t)
	vendor.Of, other.Of = tfprogram.OpenTofu, tfprogram.OpenTofu
	release(t, vendor, at("site/v1.11.0"), "1.11.0")
	release(t, other, at("site/v1.11.1"), "1.11.1")
	release(t, vendor, at("mirror/v1.10.0"), "1.10.0")
	write(t, at("mirror/1.10.1/tofu"), script("1.10.1"), 0o755)
	write(t, at("mirror/1.10.2/terraform"), script("1.10.2"), 0o755)
	write(t, at("path/tofu"), script("1.9.0"), 0o755)
	write(t, at("path/terraform"), script("1.5.7"), 0o755)
	write(t, at("named/tofu"), script("1.8.0"), 0o755)
	write(t, at("named/terraform"), script("1.8.1"), 0o755)
	site := httptest.NewServer(http.FileServer(http.Dir(at("site"))))
	t.Cleanup(site.Close)
	for _, tc := range []struct {
		name, tool, want, terraform, openTofu string
		got                                   string // below dir, or "kept:…" below Dir
		err                                   string
		is                                    error
	}{
		{name: "a release", tool: "opentofu", want: "1.11.0", got: "kept:opentofu/1.11.0/tofu"},
		{name: "a release of somebody else", tool: "opentofu", want: "1.11.1", err: "tofu_1.11.1_SHA256SUMS: not what the vendor signed", is: tfprogram.ErrUntrusted},
		{name: "no release", tool: "opentofu", want: "1.11.2", err: "opentofu 1.11.2 could not be fetched", is: toolchain.ErrNone},
		{name: "an archive of a mirror", tool: "opentofu", want: "1.10.0", got: "kept:opentofu/1.10.0/tofu"},
		{name: "unpacked in a mirror", tool: "opentofu", want: "1.10.1", got: "mirror/1.10.1/tofu"},
		{name: "Terraform of that version is none", tool: "opentofu", want: "1.10.2", err: "opentofu 1.10.2 could not be fetched", is: toolchain.ErrNone},
		{name: "PATH", tool: "opentofu", want: "1.9.0", got: "path/tofu"},
		{name: "a range", tool: "opentofu", want: "~> 1.9.0", got: "path/tofu"},
		{name: "the operator's", tool: "opentofu", openTofu: "named/tofu", want: ">= 1.5", got: "named/tofu"},
		{name: "the operator's, by the older flag", tool: "opentofu", terraform: "named/tofu", want: ">= 1.5", got: "named/tofu"},
		{name: "which no module for Terraform gets", tool: "terraform", terraform: "named/tofu", want: ">= 1.5", got: "path/terraform"},
		{name: "and every module for either", terraform: "named/tofu", want: ">= 1.5", got: "named/tofu"},
		{name: "Terraform for either", terraform: "named/terraform", openTofu: "named/tofu", want: ">= 1.5", got: "named/terraform"},
		{name: "no OpenTofu for either", want: "1.9.0", err: "terraform 1.9.0 could not be fetched"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			keep := t.TempDir()
			named := func(name string) string {
				if name == "" {
					return ""
				}
				return at(name)
			}
			cfg := toolchain.Config{Named: named(tc.terraform), Downloads: true, SearchPath: at("path"), Dir: keep, Site: "http://127.0.0.1:1"}
			tofu := toolchain.OpenTofu{Named: named(tc.openTofu), Mirror: at("mirror"), Site: site.URL, Key: vendor.Key}
			path, err := toolchain.NewTools(cfg, tofu, &order.Digests{}).For(t.Context(), tc.tool, tc.want)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("got %q, %v; want an error with %q that is %v", path, err, tc.err, tc.is)
				}
				return
			}
			want := at(tc.got)
			if below, ok := strings.CutPrefix(tc.got, "kept:"); ok {
				want = filepath.Join(keep, below)
			}
			if err != nil || path != want {
				t.Errorf("got %q, %v; want %q", path, err, want)
			}
		})
	}
}

// An apply gets the program of its plan's tool, even where the other has its version.
func TestPinnedTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "terraform"), script("1.9.0"), 0o755)
	write(t, filepath.Join(dir, "tofu"), script("1.9.0"), 0o755)
	tools := toolchain.NewTools(toolchain.Config{SearchPath: dir, Dir: t.TempDir()}, toolchain.OpenTofu{}, &order.Digests{})
	for name, want := range map[string]string{jobspec.ToolTerraform: "terraform", jobspec.ToolOpenTofu: "tofu"} {
		path, err := tools.Pinned(t.Context(), jobspec.Tool{Name: name, Version: "1.9.0", Digest: digest(t, filepath.Join(dir, want))})
		if err != nil || filepath.Base(path) != want {
			t.Errorf("%s: got %q, %v", name, path, err)
		}
	}
}
