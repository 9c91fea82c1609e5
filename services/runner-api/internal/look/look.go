// Package look decides whether what a runner says of drift can be.
package look

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/model"
)

// Found is how a look ended: with a report or with an error.
type Found struct {
	Change string // of the report
	Report *jobspec.Drift
	Error  string
}

const (
	maxError  = 4000 // bytes
	maxCounts = 16
	maxText   = 512 // bytes of what is no list
)

// Read is what a report of a run says of drift; nil when it says nothing yet, or the tick
// was missed. A look that ends well without a report has failed too.
func Read(r jobspec.Run) (*Found, error) {
	if !strings.HasPrefix(r.Action, jobspec.DriftPrefix) {
		return nil, errors.New("only a look for drift has drift")
	}
	state := model.RunState(r.State)
	switch {
	case r.Drift != nil && state != model.RunSucceeded:
		return nil, fmt.Errorf("a run that is %s has found nothing", r.State)
	case state == model.RunSucceeded && r.Drift == nil:
		return &Found{Error: "the runner found nothing out"}, nil
	case state == model.RunSucceeded:
		return &Found{Change: r.Drift.Change, Report: r.Drift}, check(*r.Drift)
	case state == model.RunFailed:
		text := jobspec.CutText(r.Error, maxError)
		if text == "" {
			text = "the look failed"
		}
		return &Found{Error: text}, nil
	}
	return nil, nil
}

func check(d jobspec.Drift) error {
	raw, err := json.Marshal(d)
	switch {
	case err != nil:
		return err
	case len(raw) > jobspec.MaxDrift:
		return fmt.Errorf("it has %d bytes, more than %d", len(raw), jobspec.MaxDrift)
	case d.Change == "":
		return errors.New("it does not say which change it is about")
	case d.Class != "" && d.Class != "human_edit" && d.Class != "real":
		return fmt.Errorf("no drift is %.64q", d.Class)
	case (d.Class == "") != (d.Digest == ""):
		return errors.New("it has a class or a digest, and not both")
	case d.AtOnce && d.Class == "":
		return errors.New("what needs no second look is drift")
	case len(d.Digest) > maxText || len(d.Change) > maxText || len(d.Counts) > maxCounts || d.Looked < 0 || d.More < 0:
		return errors.New("its numbers or names cannot be")
	}
	return nil
}
