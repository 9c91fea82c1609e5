// Package check loads files of rules and says what is wrong with them, in lines.
package check

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/engine"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// Finding is one thing that is wrong.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// Report is what was found in files.
type Report struct {
	Engine   string    `json:"engine"`
	Files    int       `json:"files"`
	Findings []Finding `json:"findings"`
}

// Files checks files, and in folders all that look like rules: *.rego without tests, and
// YAML with a policy in it.
func Files(ctx context.Context, paths []string, v0 bool) (Report, error) {
	report := Report{Engine: engine.Name(), Findings: []Finding{}}
	for _, path := range paths {
		files, err := under(path)
		if err != nil {
			return report, err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return report, err
			}
			report.Files++
			report.Findings = append(report.Findings, one(ctx, rules(file, string(raw), v0))...)
		}
	}
	return report, nil
}

// rules are a file as an engine is asked about it.
func rules(file, text string, v0 bool) policy.Rules {
	r := policy.Rules{Name: filepath.Base(file), Language: policy.Kyverno, RegoV0: v0, Text: text, File: file}
	if strings.HasSuffix(file, ".rego") {
		r.Language = policy.Rego
	}
	return r
}

func one(ctx context.Context, r policy.Rules) []Finding {
	_, err := engine.Load(ctx, r)
	var problems rule.Problems
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &problems):
		problems = rule.Problems{{Line: 1, Text: err.Error()}}
	}
	var out []Finding
	for _, p := range problems {
		out = append(out, Finding{File: r.File, Line: p.Line, Message: p.Text})
	}
	return out
}

// under are the files that a path stands for.
func under(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(file) {
		case ".rego":
			if !strings.HasSuffix(file, "_test.rego") {
				files = append(files, file)
			}
		case ".yaml", ".yml":
			raw, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if IsPolicy(string(raw)) {
				files = append(files, file)
			}
		}
		return nil
	})
	return files, err
}

// IsPolicy says whether a YAML file has a policy of Kyverno in it.
func IsPolicy(text string) bool {
	api, kind := false, false
	for line := range strings.Lines(text) {
		value, found := strings.CutPrefix(strings.TrimPrefix(line, "- "), "apiVersion:")
		value = strings.Trim(value, " \t\r\n\"'")
		if found && (strings.HasPrefix(value, "kyverno.io/") || strings.HasPrefix(value, "policies.kyverno.io/")) {
			api = true
		}
		value, found = strings.CutPrefix(line, "kind:")
		value = strings.Trim(value, " \t\r\n\"'")
		if found && strings.HasSuffix(value, "Policy") {
			kind = true
		}
	}
	return api && kind
}
