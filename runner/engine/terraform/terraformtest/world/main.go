// Command world is the provider of package terraformtest as a program, for tests of other
// modules, which build it.
package main

import (
	"fmt"
	"os"

	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

func main() {
	terraformtest.IfProvider()
	fmt.Fprintln(os.Stderr, "world is a Terraform provider for tests: Terraform starts it")
	os.Exit(2)
}
