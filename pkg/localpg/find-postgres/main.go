// Command find-postgres prints the folder of the Postgres binaries that
// `berth up` and the tests use, or says on stderr what is missing and what to
// do, and exits with 1.
package main

import (
	"fmt"
	"os"

	"github.com/berth-dev/berth/pkg/localpg"
)

func main() {
	dir, err := localpg.Find(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if advised, ok := err.(interface{ Remedy() string }); ok {
			fmt.Fprintln(os.Stderr, advised.Remedy())
		}
		os.Exit(1)
	}
	fmt.Println(dir)
}
