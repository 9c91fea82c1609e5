package follow

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// ToRetry returns the ids of the steps that a person means by a step, a workflow
// or an install: a workflow's failed steps, or those of the install's newest one.
// It is an error when none has failed.
func ToRetry(ctx context.Context, client *api.Client, what string) ([]string, error) {
	if strings.HasPrefix(what, "stp_") {
		return []string{what}, nil
	}
	if !strings.HasPrefix(what, "wfl_") {
		newest, err := client.NewestWorkflow(ctx, what)
		if err != nil {
			return nil, err
		}
		what = newest.ID
	}
	w, err := client.Workflow(ctx, what)
	if err != nil {
		return nil, err
	}
	failed := failedSteps(w.Steps)
	if len(failed) == 0 {
		return nil, fmt.Errorf("no step of %s has failed: it is %s", w.ID, w.State)
	}
	return failed, nil
}

func failedSteps(steps []ctlapi.Step) []string {
	var failed []string
	for _, s := range steps {
		if s.State == ctlapi.StepStateFailed {
			failed = append(failed, s.ID)
		}
	}
	return failed
}
