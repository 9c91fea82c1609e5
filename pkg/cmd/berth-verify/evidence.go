package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/berth-dev/berth/pkg/evidence"
	"github.com/berth-dev/berth/pkg/visible"
)

// output is where a report goes.
type output struct {
	format   string
	out, err io.Writer
}

// verifyEvidence checks a folder and prints what is wrong, file by file.
func verifyEvidence(dir string, g given, to output) int {
	report, err := checkEvidence(dir, g)
	if err != nil {
		_, _ = fmt.Fprintf(to.err, "berth-verify: %v\n", err)
		return exitBad
	}
	if to.format == "json" {
		err = printEvidenceJSON(to.out, report)
	} else {
		err = printEvidence(to.out, report)
	}
	if err != nil || !report.OK() {
		return exitBad
	}
	return exitOK
}

func checkEvidence(dir string, g given) (r evidence.Report, err error) {
	var o evidence.Options
	if o.Keys, err = readKeys(g.keys); err != nil {
		return r, err
	}
	if o.HeadKeys, err = readKeys(g.headKeys); err != nil {
		return r, err
	}
	for _, file := range g.heads {
		kept, err := readHeads(file)
		if err != nil {
			return r, err
		}
		o.Heads = append(o.Heads, kept...)
	}
	return evidence.Verify(dir, o)
}

func printEvidenceJSON(w io.Writer, report evidence.Report) error {
	text, err := json.MarshalIndent(struct {
		OK bool `json:"ok"`
		evidence.Report
	}{report.OK(), report}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(visible.JSON(text), '\n'))
	return err
}

func printEvidence(w io.Writer, r evidence.Report) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintln(w, visible.Line(fmt.Sprintf(format, args...)))
		}
	}
	for _, problem := range r.Problems {
		line("bad: %s", problem)
	}
	if !r.OK() {
		return err
	}
	line("evidence of %s · %d files as the index says · %s records · %d changes since %s · %d orders and %d consents with good signatures · egress vouched for up to line %s",
		r.Index.InstallID, len(r.Index.Files), thousands(r.Chain.Records), r.Changes, r.Index.Since.Format("2006-01-02"), r.Orders, r.Answers, thousands(r.Egress.Agreed))
	if err == nil {
		err = printKeys(w, r.Chain.Keys)
	}
	for _, absent := range r.Absent {
		line("  not here: %s", absent)
	}
	if !r.Given {
		line("the machine's key is the one that the folder names: give --key")
	}
	if r.Chain.LastAgreed == 0 {
		line("no kept head was given (--head): records cut off the end before the export would not be seen")
	}
	return err
}
