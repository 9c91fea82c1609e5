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

// begin seals off what looks at files of others, and says what is missing.
func (f form) begin(args []string) bool {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return false
	}
	os.Clearenv()
	if err := seal.Network(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	return true
}

func (f form) check(args []string) int {
	if !f.begin(args) {
		return exitUsage
	}
	report, err := check.Files(context.Background(), args, f.v0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	if f.json {
		f.print(report)
	} else {
		for _, x := range report.Findings {
			fmt.Printf("%s:%d: %s\n", x.File, x.Line, x.Message)
		}
		fmt.Printf("%d files, %d problems\n", report.Files, len(report.Findings))
	}
	if len(report.Findings) > 0 {
		return exitFailed
	}
	return exitFine
}

func (f form) test(args []string) int {
	if !f.begin(args) {
		return exitUsage
	}
	report, err := suite.Run(context.Background(), args, f.v0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	if f.json {
		f.print(report)
	} else {
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
	if report.Bad() {
		return exitFailed
	}
	return exitFine
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

func (form) print(v any) {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}
