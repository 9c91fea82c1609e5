package job

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/shown"
)

const (
	noMetrics = "the customer has switched off metrics"
	noOutputs = "the customer has switched off check outputs"
	noLines   = "[the customer has switched off log bodies: lines from here on are withheld]"
	noUnsent  = "[the customer has switched off log bodies: lines that had not left yet are withheld]"
	// maxWithheld bounds the file with lines that did not leave, in bytes, for one
	// attempt; maxWithheldAll is for all files together: the oldest go first.
	maxWithheld    = 16 << 20
	maxWithheldAll = 256 << 20
)

// off says whether the customer keeps a class of bytes back.
func (j *job) off(class string) bool { return j.deps.Off != nil && j.deps.Off.Off(class) }

// allowed is of a report what the customer lets leave.
func (j *job) allowed(run jobspec.Run) jobspec.Run {
	if (len(run.Metrics) > 0 || run.MetricsError != "") && j.off(egress.Metrics) {
		run.Metrics, run.MetricsError = nil, noMetrics
	}
	if run.Drift != nil && j.off(egress.PlanDetails) { // the same objects and fields
		counts := *run.Drift
		for _, object := range counts.Objects {
			counts.More += len(object.Differences)
		}
		counts.Objects, run.Drift = nil, &counts
	}
	if (len(run.Outputs) > 0 || run.Error != "") && j.off(egress.CheckOutputs) {
		run.Outputs = untold(run.Outputs)
		if run.Error != "" {
			run.Error = noOutputs
		}
	}
	return run
}

// untold keeps of outputs only whether nobody can tell, which is how a look ended: without it,
// it would count as good.
func untold(outputs map[string]any) map[string]any {
	findings, _ := outputs[jobspec.FindingsOutput].([]jobspec.Finding)
	if !slices.ContainsFunc(findings, func(f jobspec.Finding) bool { return f.Unknown }) {
		return map[string]any{}
	}
	return map[string]any{jobspec.FindingsOutput: []jobspec.Finding{{Object: noOutputs, Unknown: true}}}
}

// withoutDetails is a plan as the customer lets it leave now: the details may have been
// switched off since it was made.
func (j *job) withoutDetails(plan runnerapi.Plan) (runnerapi.Plan, error) {
	whole := plan.Summary
	if !j.off(egress.PlanDetails) || shown.Bare(whole) {
		return plan, nil
	}
	path := j.deps.Dir.PlanSummary(j.spec.ChangeID)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := datadir.WriteJSON(path, whole); err != nil {
			return plan, err
		}
	}
	plan.Summary = shown.Counts(whole)
	plan.Summary.NotShownBytes += whole.NotShownBytes
	return plan, nil
}

// withholding is where lines go that the customer does not let leave.
type withholding struct {
	off  func(class string) bool
	path string
}

// withheld redacts, and while log bodies are off it puts a remark in the place of
// lines. The lines go into a file on this machine, redacted too.
type withheld struct {
	*secrets
	withholding
	log *slog.Logger

	mu    sync.Mutex
	lines int // since log bodies are off
}

func (w *withheld) Bytes(raw []byte) []byte {
	clean := w.secrets.Bytes(raw)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.withholding.off(egress.LogBodies) {
		if w.lines == 0 {
			return clean
		}
		again := fmt.Sprintf("[the customer has switched log bodies on again: %d lines before this one were withheld]\n", w.lines)
		w.lines = 0
		return append([]byte(again), clean...)
	}
	first := w.lines == 0
	w.lines += max(bytes.Count(clean, []byte{'\n'}), 1)
	if err := w.store(clean); err != nil {
		w.log.Warn("withheld log lines are not kept", "err", err)
	}
	if !first {
		return nil
	}
	return []byte(noLines + "\n")
}

// ofSpool keeps lines back that are in the spool when the customer switches log bodies
// off. What the agent itself says still leaves.
func (l *logs) ofSpool() *logship.Withholding {
	if l.withholding.off == nil {
		return nil
	}
	file := &withheld{withholding: l.withholding, log: l.log}
	return &logship.Withholding{
		Off: func() bool { return l.withholding.off(egress.LogBodies) },
		Keep: func(r logship.Record) bool {
			return r.Source == logship.Agent || r.Lost || r.Text == noLines
		},
		Note: noUnsent, Store: file.store,
	}
}

// store keeps lines for the customer, as long as there is room.
func (w *withheld) store(lines []byte) error {
	if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.Size() == 0:
		pruneWithheld(filepath.Dir(w.path))
	case info.Size() > maxWithheld:
		return nil // the last line of the file says so
	case info.Size()+int64(len(lines)) > maxWithheld:
		lines = slices.Concat(lines[:max(0, maxWithheld-info.Size())], []byte("\n[the file is full: later lines are not kept]\n"))
	}
	_, err = f.Write(lines)
	return err
}

// pruneWithheld removes the oldest files.
func pruneWithheld(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log")) // names of attempts sort by time
	if err != nil {
		return
	}
	total := int64(0)
	for i := len(files) - 1; i >= 0; i-- {
		if total += fileSize(files[i]); total > maxWithheldAll {
			_ = os.Remove(files[i])
		}
	}
}
