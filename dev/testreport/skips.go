package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// engines are what a machine may lack so that a test skips.
var engines = []string{"buildkit", "chromium", "kubernetes", "namespaces", "npm", "oci", "openssh", "opentofu", "postgres", "pulumi", "root", "s3", "shells", "terraform", "terraform-second", "tilt"}

// A skip is one line of the reviewed list: "ENGINE PACKAGE.TEST REASON".
type skip struct {
	engine string // what the machine lacks
	test   string // runner/agent.TestOwnUser; with its subtests
	reason string
}

// parseSkips reads the list; # starts a comment. It returns all faults at once.
func parseSkips(r io.Reader) ([]skip, error) {
	var list []skip
	var errs []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		engine, rest, _ := strings.Cut(line, " ")
		test, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		s := skip{engine: engine, test: test, reason: strings.TrimSpace(reason)}
		switch {
		case !slices.Contains(engines, s.engine):
			errs = append(errs, fmt.Errorf("line %d: %q is none of %s", n, s.engine, strings.Join(engines, ", ")))
		case !strings.Contains(s.test, ".Test"):
			errs = append(errs, fmt.Errorf("line %d: %q is not PACKAGE.TEST", n, s.test))
		case s.reason == "":
			errs = append(errs, fmt.Errorf("line %d: %s has no reason", n, s.test))
		default:
			list = append(list, s)
		}
	}
	return list, errors.Join(append(errs, lines.Err())...)
}

// find returns the line that allows a test to skip: the test itself, one that
// it is part of, or all whose names begin as the line says before its *.
func find(list []skip, test string) (skip, bool) {
	for _, s := range list {
		prefix, all := strings.CutSuffix(s.test, "*")
		if test == s.test || strings.HasPrefix(test, s.test+"/") || all && strings.HasPrefix(test, prefix) {
			return s, true
		}
	}
	return skip{}, false
}
