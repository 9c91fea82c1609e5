// Package lint runs the checks of an app folder's lint.toml: executables of the
// folder that look at the config and say what they think of it.
//
// A check is code by the folder's authors and runs as the user who calls it,
// so nothing but `berth apps lint` calls this package. What a check gets is the
// config and nothing of its caller's: no environment but a PATH, no shell, no
// terminal. What it writes is bounded and never trusted.
package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Limits on a check.
const (
	DefaultTimeout = 30 * time.Second
	maxOutput      = 1 << 20 // bytes of stdout
	maxComplaint   = 4 << 10 // bytes of stderr
	maxFound       = 1000    // diagnostics
	maxMessage     = 2000    // bytes of one message

	// killWait is how long the pipes of a killed check are waited for, which a
	// child of its own may hold.
	killWait = 2 * time.Second
)

// plainPath is where programs are looked for when the caller has no PATH.
const plainPath = "/usr/local/bin:/usr/bin:/bin"

// Options says how checks run.
type Options struct {
	Dir     string        // the app folder
	Config  []byte        // the parsed config, as JSON
	Path    string        // PATH of the check; "" is a plain one
	Timeout time.Duration // how long each may take; 0 is DefaultTimeout
}

// said is one line of a check.
type said struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// Run runs one check and returns what it says. A check that does not end well,
// or says what cannot be understood, is an error in the result.
func Run(ctx context.Context, one check.LintCheck, o Options) []place.Diagnostic {
	r := result{check: one}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		r.fail("cannot be run: %v", err)
		return r.found
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	path := o.Path
	if path == "" {
		path = plainPath
	}
	out, complaint := &limited{limit: maxOutput, full: cancel}, &limited{limit: maxComplaint}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, filepath.FromSlash(one.Command)))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + path, "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(o.Config), out, complaint
	cmd.WaitDelay = killWait
	together(cmd)
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = cmd.Cancel() // its children, which hold its pipes
	}
	r.read(out.b.Bytes())
	switch {
	case out.over:
		r.fail("wrote more than %d bytes and was stopped", maxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.fail("took longer than %s and was stopped", timeout)
	case err != nil:
		r.fail("%v%s", err, because(complaint.b.String()))
	}
	return r.found
}

// because is the first line that a check complained with.
func because(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}

type result struct {
	check check.LintCheck
	found []place.Diagnostic
}

func (r *result) fail(format string, args ...any) {
	r.found = append(r.found, place.Diagnostic{
		Severity: place.Error, Code: check.CustomCode(r.check.Name), File: appconfig.LintFile,
		Message: fmt.Sprintf("check %q %s", r.check.Name, fmt.Sprintf(format, args...)),
	})
}

// read takes what a check wrote, a JSON object in each line.
func (r *result) read(out []byte) {
	n := 0
	for line := range bytes.Lines(out) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(r.found) == maxFound {
			r.fail("found more than %d things; berth shows the first ones", maxFound)
			return
		}
		d, problem := r.diagnostic(line)
		if problem != "" {
			r.fail("wrote something that berth does not understand in line %d: %s", n, problem)
			return
		}
		r.found = append(r.found, d)
	}
}

func (r *result) diagnostic(line []byte) (d place.Diagnostic, problem string) {
	var s said
	if err := json.Unmarshal(line, &s); err != nil {
		return d, "it is not a JSON object with file, line, col, severity and message"
	}
	severity := place.Severity(s.Severity)
	switch severity {
	case place.Error, place.Warning, place.Note:
	default:
		return d, `severity is none of "error", "warning" and "note"`
	}
	if s.Message == "" || s.Line < 0 || s.Col < 0 {
		return d, "the message is missing, or the line or column is negative"
	}
	if s.File != "" && !fs.ValidPath(s.File) {
		return d, "file is not a path in the app folder"
	}
	if len(s.Message) > maxMessage {
		s.Message = strings.ToValidUTF8(s.Message[:maxMessage], "") + "…"
	}
	return place.Diagnostic{Severity: severity, Code: check.CustomCode(r.check.Name), File: s.File, Line: s.Line, Column: s.Col, Message: s.Message}, ""
}

// limited keeps the first bytes that are written to it, and calls full once for
// more.
type limited struct {
	b     bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.limit - l.b.Len(); len(p) > room {
		l.b.Write(p[:room])
		if !l.over && l.full != nil {
			l.full()
		}
		l.over = true
		return len(p), nil
	}
	return l.b.Write(p)
}
