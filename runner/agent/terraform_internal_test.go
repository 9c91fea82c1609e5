package agent

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/toolchain"
)

func TestProvideTerraform(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if _, err := z.Create("terraform"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive.Bytes())
	pins := map[string]string{runtime.GOOS + "/" + runtime.GOARCH: hex.EncodeToString(sum[:])}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/good/") {
			_, _ = w.Write(archive.Bytes())
		}
	}))
	t.Cleanup(site.Close)

	for _, tc := range []struct {
		name, terraform, site string
		want                  string // below the data directory; empty: none
	}{
		{name: "nothing is wanted", terraform: "", site: site.URL + "/good"},
		{name: "it is there", terraform: TerraformFetch, site: site.URL + "/good", want: "tools/terraform/1.11.4/terraform"},
		{name: "another archive", terraform: TerraformFetch, site: site.URL + "/bad"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, err := datadir.At(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			a := &agent{dir: dir, cfg: Config{
				Terraform: tc.terraform, Log: slog.New(slog.DiscardHandler), TerraformSource: toolchain.Source{Site: tc.site, Pins: pins},
			}}
			a.provideTerraform(t.Context())
			want := ""
			if tc.want != "" {
				want = filepath.Join(dir.Path(), tc.want)
			}
			if a.cfg.Terraform != want {
				t.Errorf("terraform is %q, want %q", a.cfg.Terraform, want)
			}
		})
	}
}

// A Terraform next to the runner is taken before one is fetched.
func TestTerraformNextToTheRunner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"berth-engine", "terraform"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{Executable: filepath.Join(dir, "berth-runner"), Terraform: TerraformFetch}
	if err := c.findFiles(); err != nil || c.Terraform != filepath.Join(dir, "terraform") {
		t.Errorf("terraform is %q, %v; want the one next to the runner", c.Terraform, err)
	}
	if err := os.Remove(filepath.Join(dir, "terraform")); err != nil {
		t.Fatal(err)
	}
	c.Terraform = TerraformFetch
	if err := c.findFiles(); err != nil || c.Terraform != TerraformFetch {
		t.Errorf("terraform is %q, %v; want it to be fetched", c.Terraform, err)
	}
}
