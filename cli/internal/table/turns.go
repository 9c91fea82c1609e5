package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Turns says, a line each, who holds a resource and which changes wait for it, the
// next one first.
func Turns(resources []ctlapi.Resource, now time.Time) []string {
	var lines []string
	for _, r := range resources {
		if h := r.Holder; h != nil {
			lines = append(lines, visible.Row(fmt.Sprintf("%s is held by %s", r.Name, turn(*h, now))))
		}
		for i, q := range r.Queue {
			lines = append(lines, visible.Row(fmt.Sprintf("%s, %d. in the queue: %s", r.Name, i+1, turn(q, now))))
		}
	}
	return lines
}

func turn(t ctlapi.ResourceTurn, now time.Time) string {
	text := fmt.Sprintf("%s of the %s %s that %s started, for %s", t.Change, strings.ReplaceAll(string(t.WorkflowKind), "_", " "), t.Workflow, t.CreatedBy, age(now, t.Since))
	if t.WaitsFor != nil {
		text += ", behind " + *t.WaitsFor
	}
	return text
}
