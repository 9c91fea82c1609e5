// Package logview shows the logs of what people name: an install, a part of one,
// a build, a change, a step, a run.
package logview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// View shows the streams of a thing.
type View struct {
	Client *api.Client
	Logs   *api.Logs
	Out    io.Writer // the lines
	Err    io.Writer // everything that is said about them
	Raw    io.Writer // where lines go as they were written; nil shows them without what could steer a terminal
	JSON   bool      // a JSON object for each line
	Follow bool      // waits for more, until everything is finished
	Times  bool      // says when each line was written
}

// source is a thing with streams, as it is now.
type source struct {
	titles  []string // of the streams, in their order
	streams []string
	// moved waits until there may be more streams; nil when there cannot be.
	moved func(context.Context) error
}

func (s *source) add(title string, streams ...string) {
	for _, id := range streams {
		s.titles = append(s.titles, title)
		s.streams = append(s.streams, id)
	}
}

// Show shows what people name: INSTALL, INSTALL/COMPONENT, INSTALL/ACTION, or an
// id.
func (l *View) Show(ctx context.Context, what string) error {
	if strings.HasPrefix(what, "str_") {
		return l.stream(ctx, what)
	}
	shown := map[string]bool{}
	for {
		s, err := l.find(ctx, what)
		if err != nil {
			return err
		}
		for i, id := range s.streams {
			if shown[id] {
				continue
			}
			shown[id] = true
			if len(s.streams) > 1 || s.moved != nil {
				output.Printf(l.Err, "── %s\n", s.titles[i])
			}
			if err := l.stream(ctx, id); err != nil {
				return err
			}
		}
		if !l.Follow || s.moved == nil {
			if len(shown) == 0 {
				output.Printf(l.Err, "%s has no log yet\n", what)
			}
			return nil
		}
		if err := s.moved(ctx); err != nil {
			return err
		}
	}
}

// find resolves what people name to streams.
func (l *View) find(ctx context.Context, what string) (*source, error) {
	prefix, _, _ := id.Cut(what)
	switch prefix {
	case "bld":
		return l.ofBuild(ctx, what)
	case "chg":
		return l.ofChange(ctx, what)
	case "stp":
		return l.ofStep(ctx, what)
	case "wfl":
		return l.ofWorkflow(ctx, what)
	case "arn":
		return l.ofRun(ctx, what)
	case "job":
		return nil, usage.Errorf("%s is a job; find its log by the change, step or build it belongs to: berth logs CHANGE, STEP or BUILD; berth workflows show lists the steps", what)
	}
	install, part, found := strings.Cut(what, "/")
	if !found {
		w, err := l.Client.NewestWorkflow(ctx, install)
		if err != nil {
			return nil, err
		}
		return l.ofWorkflow(ctx, w.ID)
	}
	return l.ofPart(ctx, install, part)
}

// ofPart is the newest change of a component or, when there is none, the
// newest run of an action.
func (l *View) ofPart(ctx context.Context, install, part string) (*source, error) {
	changes, err := l.Client.Changes(ctx, api.PageSize, ctlapi.ListChangesParams{Install: &install})
	if err != nil {
		return nil, err
	}
	for _, change := range changes { // newest first
		if change.Resource != nil && change.Resource.Name == part {
			return l.ofChange(ctx, change.ID)
		}
	}
	runs, err := l.Client.Runs(ctx, 1, ctlapi.ListActionRunsParams{Install: &install, Action: api.Optional(part)})
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("install %s has no component %q with a change and no such action with a run; "+
			"berth installs resources %s and berth actions list %s show what there is", install, part, install, install)
	}
	return l.ofRun(ctx, runs[0].ID)
}

func (l *View) ofBuild(ctx context.Context, id string) (*source, error) {
	resp, err := l.Client.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{})
	if err != nil {
		return nil, err
	}
	build, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	s := &source{}
	if build.Job != nil {
		s.add("build of "+build.Component.Name, build.Job.StreamIds...)
	}
	if build.ReusedFrom != nil {
		output.Printf(l.Err, "it reused the artifact of %s\n", *build.ReusedFrom)
	}
	if build.FinishedAt == nil {
		s.moved = func(ctx context.Context) error {
			_, err := l.Client.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{Wait: api.Optional(shortPoll), AfterVersion: &build.Version})
			return err
		}
	}
	return s, nil
}

// shortPoll is how long a question about something that may get a stream
// without its version rising is held.
const shortPoll = "1s"

func (l *View) ofChange(ctx context.Context, id string) (*source, error) {
	change, err := l.Client.Change(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &source{}
	s.addJobs(api.Value(change.Resource).Name, change.Jobs)
	switch change.State {
	case ctlapi.ChangeStatePreparing, ctlapi.ChangeStateProposed, ctlapi.ChangeStateApproved, ctlapi.ChangeStateExecuting:
		s.moved = l.whenWorkflowMoves(change.WorkflowID)
	}
	return s, nil
}

func (s *source) addJobs(name string, jobs []ctlapi.Job) {
	for _, job := range jobs {
		s.add(strings.TrimSpace(job.Operation+" of "+name), job.StreamIds...)
	}
}

func (l *View) ofStep(ctx context.Context, id string) (*source, error) {
	resp, err := l.Client.GetStepWithResponse(ctx, id)
	if err != nil {
		return nil, err
	}
	step, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	s := &source{}
	s.addJobs(step.Name, step.Jobs)
	if step.FinishedAt == nil {
		s.moved = l.whenWorkflowMoves(step.WorkflowID)
	}
	return s, nil
}

func (l *View) ofWorkflow(ctx context.Context, id string) (*source, error) {
	w, err := l.Client.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &source{}
	for _, summary := range w.Steps {
		if summary.StartedAt == nil {
			continue
		}
		of, err := l.ofStep(ctx, summary.ID)
		if err != nil {
			return nil, err
		}
		s.titles, s.streams = append(s.titles, of.titles...), append(s.streams, of.streams...)
	}
	if w.FinishedAt == nil {
		s.moved = l.whenWorkflowMoves(id)
	}
	return s, nil
}

func (l *View) ofRun(ctx context.Context, id string) (*source, error) {
	resp, err := l.Client.GetActionRunWithResponse(ctx, id)
	if err != nil {
		return nil, err
	}
	run, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	s := &source{}
	if stream := api.Value(run.StreamID); stream != "" {
		s.add(run.Action, stream)
		return s, nil
	}
	if run.WorkflowID != nil { // somebody asked for it: the log is that of the job
		return l.ofWorkflow(ctx, *run.WorkflowID)
	}
	return s, nil
}

// whenWorkflowMoves waits for the next event of a workflow.
func (l *View) whenWorkflowMoves(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		w, err := l.Client.Workflow(ctx, id)
		if err != nil || w.FinishedAt != nil {
			return err
		}
		// A stream begins after the event that announces its job.
		_, err = l.Client.GetWorkflowWithResponse(ctx, id, &ctlapi.GetWorkflowParams{Wait: api.Optional(shortPoll), AfterVersion: &w.Version})
		return err
	}
}

// stream prints one stream, then whether it is complete.
func (l *View) stream(ctx context.Context, id string) error {
	state, err := l.Logs.Stream(ctx, id)
	if err != nil {
		return err
	}
	if l.Follow && state.State == logapi.StreamStateOpen {
		if state, err = l.Logs.Tail(ctx, id, 0, l.print); err != nil {
			return err
		}
	} else if err := l.pages(ctx, id); err != nil {
		return err
	}
	output.Println(l.Err, Completeness(state))
	return nil
}

func (l *View) pages(ctx context.Context, id string) error {
	var after int64
	for {
		resp, err := l.Logs.ListRecordsWithResponse(ctx, id, &logapi.ListRecordsParams{After: &after})
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		for _, record := range page.Items {
			if err := l.print(record); err != nil {
				return err
			}
		}
		if page.Next == nil || len(page.Items) == 0 {
			return nil
		}
		after = *page.Next
	}
}

func (l *View) print(r logapi.Record) error {
	if l.JSON {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = l.Out.Write(append(visible.JSON(line), '\n'))
		return err
	}
	if l.Times {
		if _, err := io.WriteString(l.Out, r.Time.Local().Format("15:04:05.000 ")); err != nil {
			return err
		}
	}
	end := "\n"
	if api.Value(r.Continues) {
		end = ""
	}
	if l.Raw != nil {
		_, err := io.WriteString(l.Raw, r.Text+end)
		return err
	}
	_, err := io.WriteString(l.Out, output.Printable(r.Text)+end)
	return err
}

// Completeness is the last word on a stream.
func Completeness(s *logapi.Stream) string {
	var missing int64
	var gaps []string
	for _, gap := range s.Gaps {
		missing += gap.Lines
		gaps = append(gaps, fmt.Sprintf("%s lines %s at line %s", thousands(gap.Lines), gap.Reason, thousands(gap.Seq)))
	}
	have := fmt.Sprintf("%s of %s lines, sha256 %s", thousands(s.Lines-missingStored(s)), thousands(s.Lines-missingStored(s)+missing), s.Sha256)
	switch {
	case len(gaps) > 0:
		have += "; missing: " + strings.Join(gaps, "; ")
	case s.State == logapi.StreamStateOpen:
		have = fmt.Sprintf("%s lines so far, more may come", thousands(s.Lines))
	case s.State == logapi.StreamStateClosed:
		have = fmt.Sprintf("%s lines, then the attempt was cut off; its end is unknown", thousands(s.Lines))
	}
	if s.LateRedaction {
		have += "; berth learned of a secret while this ran, so earlier lines may show it"
	}
	return have
}

// missingStored are the records that stand for dropped lines, and the lines
// that expired: both are counted among the lines, and are not there.
func missingStored(s *logapi.Stream) (n int64) {
	for _, gap := range s.Gaps {
		if gap.Reason == logapi.GapReasonExpired {
			n += gap.Lines
		} else {
			n++
		}
	}
	return n
}

// thousands writes 12431 as 12,431.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
