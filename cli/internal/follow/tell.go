package follow

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
)

// Teller says in a line each what the events of a workflow are about.
type Teller struct {
	reasons map[string]string // why the change of a step failed, by the step's name
}

// Line says what an event is about, "" for those that only matter to programs. What
// it said of a change it does not say of the change's step again.
func (t *Teller) Line(e api.Event) string {
	var body struct {
		Step, State, Error, Actor string
		ChangeID                  string `json:"change_id"`
		Wait                      *struct{ Reason string }
		ApproveAll                bool   `json:"approve_all"`
		CancelRequested           bool   `json:"cancel_requested"`
		RetriedBy                 string `json:"retried_by"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return ""
	}
	var text string
	switch {
	case body.ApproveAll:
		text = "all changes approved by " + body.Actor
	case body.CancelRequested:
		text = "cancelled by " + body.Actor
	case body.RetriedBy != "":
		text = body.Step + " retried by " + body.RetriedBy
	case body.State == "" || e.Kind == "job":
		return ""
	case e.Kind == "workflow":
		text = "workflow " + body.State
	case e.Kind == "step":
		text = body.Step + ": " + body.State
	case e.Kind == "change":
		text = "change " + body.ChangeID + ": " + strings.ReplaceAll(body.State, "_", " ")
		if body.Step != "" {
			text = body.Step + ": " + text
		}
	default:
		return ""
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
