package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// module is the module that all terraform_module components are, in an app folder.
const module = "src/module"

// moduleKinds are those that are measured without a cluster.
var moduleKinds = []kind{{
	name: "terraform_module", tool: "terraform apply",
	component: func(name, _ string) string {
		return fmt.Sprintf(`# terraform
name              = %q
type              = "terraform_module"
terraform_version = ">= 1.5.0, < 2.0.0"

[berth]
local_source = %q

[vars]
value = "{{ .nuon.inputs.inputs.value }}"
`, name, module)
	},
	arguments: func(t *toolWay, name, value string) []string {
		return []string{"-chdir=" + t.moduleDir(name), "apply", "-auto-approve", "-input=false", "-no-color", "-var", "value=" + value}
	},
	// A loop over `terraform apply` begins with directories that are initialised.
	begin: func(ctx context.Context, t *toolWay) error {
		for _, name := range names(t.n) {
			if err := os.CopyFS(t.moduleDir(name), os.DirFS(filepath.Join(t.folder, module))); err != nil {
				return err
			}
			if _, err := t.system.command(ctx, t.tools["terraform"], "-chdir="+t.moduleDir(name), "init", "-input=false", "-no-color"); err != nil {
				return err
			}
		}
		return nil
	},
	verify: func(t *toolWay) error {
		for _, name := range names(t.n) {
			state, err := os.ReadFile(filepath.Join(t.moduleDir(name), "terraform.tfstate"))
			if err != nil {
				return err
			}
			if !bytes.Contains(state, []byte(strconv.Quote(t.value))) {
				return fmt.Errorf("%s is not at %s", name, t.value)
			}
		}
		return nil
	},
}}

// moduleDir is where the tool works on a component.
func (t *toolWay) moduleDir(name string) string {
	return filepath.Join(t.folder+"-tool", name)
}
