package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	ledger "github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// The customer switches log bodies off while the agent runs: no line of an engine
// leaves from then on, the job goes on, the customer has the lines, and the chain
// says it.
func TestLogBodiesAreSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	stop := r.start()
	job := r.plane.give(script("print before", "touch "+r.file("begun"), "wait "+r.file("gate"), "print after-the-switch"))
	r.appears(r.file("begun"))
	stream := r.plane.streamOf(job)
	r.plane.until(t, "the first line", func() bool {
		s := r.plane.streams[stream]
		return s != nil && slices.ContainsFunc(s.lines, func(l string) bool { return strings.Contains(l, "before") })
	})
	if _, err := egress.Set(r.dir.EgressOff(), egress.Switched{Class: egress.LogBodies, By: "ada", At: time.Now(), Reason: "audit"}, true); err != nil {
		t.Fatal(err)
	}
	r.touch("gate")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	log := strings.Join(r.plane.log(t, stream), "\n")
	if strings.Contains(log, "after-the-switch") || !strings.Contains(log, "the customer has switched off log bodies") {
		t.Errorf("log:\n%s", log)
	}
	kept, err := filepath.Glob(filepath.Join(r.dir.Egress(), "withheld", job+".*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("withheld files: %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), "after-the-switch") {
		t.Errorf("withheld: %q, %v", text, err)
	}
	r.plane.until(t, "the head of the ledger in the chain", func() bool {
		return slices.ContainsFunc(r.plane.chain, func(rec runnerapi.ChainRecord) bool { return strings.Contains(string(rec.Body), ledger.AnchorWhat) })
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.dir.Chain())
	if err != nil {
		t.Fatal(err)
	}
	var records []chain.Record
	for raw := range bytes.Lines(text) {
		record, err := chain.ParseRecord(bytes.TrimSpace(raw))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	if !slices.ContainsFunc(records, func(rec chain.Record) bool {
		return rec.Actor == "ada" && rec.What == "egress of log-bodies was switched off" && rec.Detail == "audit"
	}) {
		t.Error("the chain does not say that log bodies were switched off")
	}
	anchors, err := ledger.Anchors(bytes.NewReader(text))
	if err != nil || len(anchors) < 1 {
		t.Fatalf("anchors: %v, %v", anchors, err)
	}
	report, err := ledger.Verify(r.dir.Egress(), anchors)
	if err != nil || !report.OK() || report.Agreed == 0 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
	for _, class := range []string{"enrolment", "sessions", "claims", "results", "chain", egress.LogBodies, "log-ends"} {
		if report.Totals[class].Count == 0 {
			t.Errorf("nothing of class %s is in the ledger: %v", class, report.Totals)
		}
	}
}
