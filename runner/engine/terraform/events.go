package terraform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// events reads what `terraform apply -json` says, one JSON object per line, and
// writes it to the log as lines for people. Values of outputs are not written.
type events struct {
	log     io.Writer
	show    func(jobspec.Progress) // nil: nobody looks
	started chan struct{}          // closed at the first line
	once    sync.Once

	partial     []byte
	underway    underway
	diagnostics []diagnostic
	summary     bool // the apply told what it did, so it came to its end
	wroteAccess bool // it made or changed rules of access, or began to
}

type diagnostic struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Address  string `json:"address"`
	Range    *struct {
		Filename string `json:"filename"`
		Start    struct {
			Line int `json:"line"`
		} `json:"start"`
	} `json:"range"`
}

type event struct {
	Type    string `json:"type"`
	Message string `json:"@message"`
	Hook    struct {
		Resource struct {
			Addr string `json:"addr"`
			Type string `json:"resource_type"`
		} `json:"resource"`
		Action      string `json:"action"`
		Provisioner string `json:"provisioner"`
		Output      string `json:"output"`
		IDValue     string `json:"id_value"`
		Elapsed     int    `json:"elapsed_seconds"`
	} `json:"hook"`
	Change struct {
		Resource struct {
			Addr string `json:"addr"`
		} `json:"resource"`
		Action string `json:"action"`
	} `json:"change"`
	Changes struct {
		Operation string `json:"operation"`
	} `json:"changes"`
	Diagnostic *diagnostic `json:"diagnostic"`
}

func newEvents(log io.Writer) *events {
	return &events{log: log, started: make(chan struct{})}
}

// Write takes the output of Terraform as it comes.
func (e *events) Write(p []byte) (int, error) {
	e.once.Do(func() { close(e.started) })
	e.partial = append(e.partial, p...)
	for {
		line, rest, ok := bytes.Cut(e.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		e.line(line)
		e.partial = rest
	}
}

// flush takes a last line without an end: Terraform was killed in it.
func (e *events) flush() {
	if len(e.partial) > 0 {
		e.line(e.partial)
		e.partial = nil
	}
}

func (e *events) completed() bool { return e.summary && len(e.diagnosticErrors()) == 0 }

func (e *events) diagnosticErrors() []diagnostic {
	return slices.DeleteFunc(slices.Clone(e.diagnostics), func(d diagnostic) bool { return d.Severity != "error" })
}

func (e *events) line(line []byte) {
	var ev event
	if err := json.Unmarshal(line, &ev); err != nil {
		fmt.Fprintf(e.log, "%s\n", line) // a provider that prints, or a crash
		return
	}
	if d := ev.Diagnostic; d != nil {
		e.diagnostics = append(e.diagnostics, *d)
	}
	if ev.Type == "apply_start" && accessRule.MatchString(ev.Hook.Resource.Type) {
		e.wroteAccess = true
	}
	if ev.Type == "change_summary" && ev.Changes.Operation != "plan" {
		e.summary = true
	}
	if text := ev.text(); text != "" {
		fmt.Fprintln(e.log, text)
	}
	e.underway.take(ev, time.Now())
	if e.show != nil {
		e.show(e.underway.progress())
	}
}

// text is what people read of an event, "" for nothing.
func (ev event) text() string {
	addr := ev.Hook.Resource.Addr
	switch ev.Type {
	case "version", "planned_change", "resource_drift", "outputs":
		return ""
	case "apply_start", "refresh_start", "provision_start":
		if ev.Type == "provision_start" {
			return fmt.Sprintf("%s: running %s…", addr, ev.Hook.Provisioner)
		}
		return fmt.Sprintf("%s: %s…", addr, ev.doing())
	case "apply_progress":
		return fmt.Sprintf("%s: still %s, %d s", addr, ev.doing(), ev.Hook.Elapsed)
	case "apply_complete":
		text := fmt.Sprintf("%s: %s in %d s", addr, verbs[ev.Hook.Action].done, ev.Hook.Elapsed)
		if ev.Hook.IDValue != "" {
			text += " [" + ev.Hook.IDValue + "]"
		}
		return text
	case "apply_errored":
		return fmt.Sprintf("%s: failed after %d s", addr, ev.Hook.Elapsed)
	case "provision_progress":
		return fmt.Sprintf("%s: | %s", addr, ev.Hook.Output)
	case "provision_complete":
		return ""
	case "diagnostic":
		if ev.Diagnostic != nil {
			return ev.Diagnostic.text()
		}
	}
	return ev.Message
}

func (ev event) doing() string { return verbs[ev.Hook.Action].doing }

// verbs name Terraform's actions; unknown ones are named as it does.
var verbs = map[string]struct{ doing, done string }{
	"create": {"creating", "created"},
	"update": {"updating", "updated"},
	"delete": {"deleting", "deleted"},
	"read":   {"reading", "read"},
	"noop":   {"noting", "noted"},
}

func (d diagnostic) text() string {
	head := "Error: "
	if d.Severity != "error" {
		head = "Warning: "
	}
	return head + d.String()
}

// String is the diagnostic in one line, without the source that Terraform shows
// with it.
func (d diagnostic) String() string {
	text := d.Summary
	if d.Address != "" {
		text = d.Address + ": " + text
	}
	if d.Range != nil {
		text += fmt.Sprintf(" (%s:%d)", d.Range.Filename, d.Range.Start.Line)
	}
	if d.Detail != "" {
		text += ": " + strings.Join(strings.Fields(d.Detail), " ")
	}
	return text
}

// Summaries of diagnostics that mean something to Berth. Terraform has no codes
// for them, and terraform-exec no errors.
const lockedSummary = "Error acquiring the state lock"

var staleSummaries = []string{"Saved plan is stale", "Saved plan does not match the given state"}

func (e *events) find(summaries ...string) (diagnostic, bool) {
	for _, d := range e.diagnosticErrors() {
		if slices.Contains(summaries, d.Summary) {
			return d, true
		}
	}
	return diagnostic{}, false
}

// firstError is the first thing that went wrong, in one line; err is for when
// Terraform said nothing.
func (e *events) firstError(err error) string {
	errs := e.diagnosticErrors()
	switch len(errs) {
	case 0:
		return firstError(err)
	case 1:
		return errs[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", errs[0], len(errs)-1)
}

// firstError takes the first error out of what Terraform wrote to stderr, in
// one line: its heading and the paragraphs below, without the frame. That there
// are errors is none.
func firstError(err error) string {
	errs := diagnosticsOf(err)
	if len(errs) > 1 && wrongStart(errs[0].Summary) {
		errs = errs[1:]
	}
	if len(errs) == 0 {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	return strings.Join(strings.Fields(errs[0].Summary+" "+errs[0].Detail), " ")
}
