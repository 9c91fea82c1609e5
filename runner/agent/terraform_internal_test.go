package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// At the start, fetch gets the version that Berth is tested with, and an agent that
// cannot have it begins all the same.
func TestProvideTerraform(t *testing.T) {
	t.Parallel()
	mirror := t.TempDir()
	program := filepath.Join(mirror, "1.11.4", "terraform")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, terraform, mirror, want string }{
		{name: "nothing is wanted"},
		{name: "one is named", terraform: "/opt/terraform", mirror: mirror, want: "/opt/terraform"},
		{name: "it can be had", terraform: TerraformFetch, mirror: mirror, want: program},
		{name: "it cannot be had", terraform: TerraformFetch, mirror: filepath.Join(mirror, "nowhere")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, err := datadir.At(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent(Config{
				Terraform: tc.terraform, TerraformMirror: tc.mirror, TerraformDownloads: DownloadsForbid, Log: slog.New(slog.DiscardHandler),
			})
			a.dir = dir
			a.provideTerraform(t.Context())
			if a.cfg.Terraform != tc.want || a.terraforms == nil {
				t.Errorf("terraform is %q, want %q", a.cfg.Terraform, tc.want)
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
