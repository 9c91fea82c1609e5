package follow

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Teller says in a line each what the events of a workflow are about.
type Teller struct {
	reasons map[string]string // why the change of a step failed, by the step's name
}

// eventBody is what the events of a workflow hold, of whatever kind.
type eventBody struct {
	Step, State, Error, Actor string
	Note                      string
	ChangeID                  string `json:"change_id"`
	Wait                      *struct{ Reason string }
	Ended                     *ctlapi.Ended
	EndedBy                   *string `json:"ended_by"`
	ApproveAll                bool    `json:"approve_all"`
	CancelRequested           bool    `json:"cancel_requested"`
	RetriedBy                 string  `json:"retried_by"`
}

// about says in a few words what came about, "" for what only matters to programs.
func (b eventBody) about(kind string) string {
	switch {
	case b.ApproveAll:
		return "all changes approved by " + b.Actor
	case b.CancelRequested:
		return "cancelled by " + b.Actor
	case b.RetriedBy != "":
		return b.Step + " retried by " + b.RetriedBy
	case b.State == "" || kind == "job":
		return ""
	case kind == "workflow" && b.Ended != nil:
		return "workflow " + Ended(b.Ended, b.EndedBy)
	case kind == "workflow":
		return "workflow " + b.State
	case kind == "step" && b.Ended != nil:
		return b.Step + ": not done"
	case kind == "step":
		return b.Step + ": " + b.State
	case kind == "change":
		text := "change " + b.ChangeID + ": " + strings.ReplaceAll(b.State, "_", " ")
		if b.Step != "" {
			text = b.Step + ": " + text
		}
		return text
	}
	return ""
}

// Line says what an event is about, "" for those that only matter to programs. What
// it said of a change it does not say of the change's step again.
func (t *Teller) Line(e api.Event) string {
	var body eventBody
	if json.Unmarshal(e.Body, &body) != nil {
		return ""
	}
	text := body.about(e.Kind)
	if text == "" {
		return ""
	}
	if body.Note != "" {
		text += ", " + body.Note
	}
	if body.Wait != nil && body.Wait.Reason != "" {
		text += ", " + body.Wait.Reason
	}
	if body.Error != "" && (e.Kind != "step" || t.reasons[body.Step] != body.Error) {
		text += ", " + reason(body.Step, body.Error)
	}
	if e.Kind == "change" && body.Step != "" {
		if t.reasons == nil {
			t.reasons = map[string]string{}
		}
		t.reasons[body.Step] = body.Error
	}
	return e.At.Local().Format(time.TimeOnly) + "  " + text
}
