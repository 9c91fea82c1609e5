package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/berth-dev/berth/runner/policy/check"
	"github.com/berth-dev/berth/runner/policy/seal"
	"github.com/berth-dev/berth/runner/policy/suite"
)

// form is how people asked for it.
type form struct{ json, v0 bool }

// answer is what a mode found: for programs as it is, for people as a table.
type answer struct {
	report any
	table  func()
	bad    bool
}

// run gives an answer, of a process that has no network and no environment any more: it looks
// at files of others.
func (f form) run(args []string, find func(ctx context.Context) (answer, error)) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	os.Clearenv()
	var found answer
	err := seal.Network()
	if err == nil {
		found, err = find(context.Background())
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	case f.json:
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		_ = e.Encode(found.report)
	default:
		found.table()
	}
	if found.bad {
		return exitFailed
	}
	return exitFine
}

func (f form) check(args []string) int {
	return f.run(args, func(ctx context.Context) (answer, error) {
		report, err := check.Files(ctx, args, f.v0)
		return answer{report, func() { findings(report) }, len(report.Findings) > 0}, err
	})
}

func findings(report check.Report) {
	for _, x := range report.Findings {
		fmt.Printf("%s:%d: %s\n", x.File, x.Line, x.Message)
	}
	fmt.Printf("%d files, %d problems\n", report.Files, len(report.Findings))
}

func (f form) test(args []string) int {
	return f.run(args, func(ctx context.Context) (answer, error) {
		report, err := suite.Run(ctx, args, f.v0)
		return answer{report, func() { tests(report) }, report.Bad()}, err
	})
}

func tests(report suite.Report) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, t := range report.Tests {
		where := t.File
		if t.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, t.Line)
		}
		subject := t.Policy
		if t.Rule != "" {
			subject += "/" + t.Rule
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Result, where, subject, t.Resource, short(t.Message))
	}
	_ = w.Flush()
	fmt.Printf("%d passed, %d failed, %d errors, %d unknown\n", report.Passed, report.Failed, report.Errors, report.Unknown)
}

// short is a message in one line of a table.
func short(text string) string {
	const most = 120 // runes
	line := []rune(text)
	for i, r := range line {
		if r == '\n' || r == '\t' {
			line[i] = ' '
		}
	}
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}
