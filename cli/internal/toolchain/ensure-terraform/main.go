// Command ensure-terraform prints the path of a Terraform that Berth can use,
// fetching one when none is found. It is how the scripts of the tree get one
// before any of Berth runs; `berth up` does the same by itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/berth-dev/berth/cli/internal/toolchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := toolchain.OptionsFromEnv()
	o.Progress = func(line string) { fmt.Fprintln(os.Stderr, line) }
	path, err := toolchain.EnsureTerraform(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
