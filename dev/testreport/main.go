// Command testreport turns the events of `go test -json` into what a person
// wants to read: one line per package, the output of what failed, the skipped
// tests under what they lacked, and a last line that counts.
//
//	go test -json ./... | testreport -skips dev/skips.txt
//
// A test may skip only when it is on the reviewed list of skips, which says
// what it lacks and why that is acceptable. So a suite cannot turn green by
// quietly not running.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	file := flag.String("skips", "", "the reviewed list of tests that may skip")
	flag.Parse()
	ok, err := run(os.Stdin, os.Stdout, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reports whether the suite is good.
func run(in io.Reader, out io.Writer, skipsFile string) (bool, error) {
	var allowed []skip
	if skipsFile != "" {
		f, err := os.Open(skipsFile)
		if err != nil {
			return false, err
		}
		defer func() { _ = f.Close() }()
		if allowed, err = parseSkips(f); err != nil {
			return false, fmt.Errorf("%s: %w", skipsFile, err)
		}
	}
	r, began := newReport(out), time.Now()
	if err := r.read(in); err != nil {
		return false, err
	}
	r.printf("\nbuilt and ran in %s\n", time.Since(began).Round(time.Second))
	return r.summary(allowed), nil
}
