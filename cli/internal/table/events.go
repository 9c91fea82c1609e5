package table

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Event shows the events of an org.
func Event() output.View[ctlapi.Event] {
	return output.View[ctlapi.Event]{
		Name: func(e ctlapi.Event) string { return e.ID },
		None: "no events",
		Columns: []output.Column[ctlapi.Event]{
			{Head: "SEQ", Least: 6, Cell: func(e ctlapi.Event) string { return strconv.FormatInt(e.Seq, 10) }},
			{Head: "AT", Least: 20, Cell: func(e ctlapi.Event) string { return e.At.UTC().Format(time.RFC3339) }},
			{Head: "TYPE", Shrinks: true, Least: 22, Cell: func(e ctlapi.Event) string { return e.Kind }},
			{Head: "INSTALL", Shrinks: true, Least: 16, Cell: func(e ctlapi.Event) string { return said(e, "install") }},
			{Head: "ABOUT", Shrinks: true, Least: 24, Cell: func(e ctlapi.Event) string {
				return said(e, "resource", "step", "action", "component", "check", "secret", "webhook", "subject", "alarm_kind", "workflow_kind", "app", "runner_id")
			}},
			{Head: "BY", Shrinks: true, Yields: true, Cell: func(e ctlapi.Event) string { return said(e, "actor") }},
			{Head: "ID", Wide: true, Cell: func(e ctlapi.Event) string { return e.ID }},
			{Head: "INSTALL ID", Wide: true, Cell: func(e ctlapi.Event) string { return api.Value(e.InstallID) }},
			{Head: "BODY", Wide: true, Cell: func(e ctlapi.Event) string { return string(e.Body) }},
		},
	}
}

// said is the first of these fields that the body of an event has.
func said(e ctlapi.Event, fields ...string) string {
	var body map[string]any
	if json.Unmarshal(e.Body, &body) != nil {
		return ""
	}
	for _, field := range fields {
		if text, ok := body[field].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
