package tfvars_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/tfvars"
)

// Which files of a directory each tool reads.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := fstest.MapFS{}
	for _, name := range []string{
		"a.tf", "a.tofu", "b.tf.json", "b.tofu.json", "c.tf", "c.tofu.json", "d.tofu", "x_override.tf", "x_override.tofu",
		".hidden.tofu", "terraform.tfvars", "a.auto.tfvars", "README.md", "a.tftest.hcl", "tofu",
	} {
		dir[name] = &fstest.MapFile{}
	}
	dir["folder.tofu"] = &fstest.MapFile{Mode: os.ModeDir}
	entries, err := dir.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"terraform.tfvars"}
	for name, tc := range map[string]struct {
		openTofu bool
		want     []string
	}{
		"Terraform": {false, append([]string{"a.auto.tfvars", "a.tf", "b.tf.json", "c.tf"}, append(values, "x_override.tf")...)},
		"OpenTofu":  {true, append([]string{"a.auto.tfvars", "a.tofu", "b.tofu.json", "c.tf", "c.tofu.json", "d.tofu"}, append(values, "x_override.tofu")...)},
	} {
		if diff := cmp.Diff(tc.want, tfvars.Read(entries, tc.openTofu)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
