package follow

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// WholeWorkflow returns the workflow that a person means, or the newest of the install;
// false when they mean a step or a component.
func WholeWorkflow(ctx context.Context, client *api.Client, what string) (id string, whole bool, err error) {
	switch {
	case strings.HasPrefix(what, "wfl_"):
		return what, true, nil
	case strings.HasPrefix(what, "stp_"), strings.Contains(what, "/"):
		return "", false, nil
	}
	newest, err := client.NewestWorkflow(ctx, what)
	if err != nil {
		return "", false, err
	}
	return newest.ID, true, nil
}

// ToRetry returns the ids of the steps that a person means by a step, a workflow,
// an install or one of its components: a workflow's failed steps, or those of the
// install's newest one. It is an error when none has failed.
func ToRetry(ctx context.Context, client *api.Client, what string) ([]string, error) {
	if strings.HasPrefix(what, "stp_") {
		return []string{what}, nil
	}
	part := ""
	if !strings.HasPrefix(what, "wfl_") {
		what, part, _ = strings.Cut(what, "/")
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
	var failed, others []string
	for _, s := range w.Steps {
		switch {
		case s.State != ctlapi.StepStateFailed:
		case part == "" || part == partOf(s):
			failed = append(failed, s.ID)
		default:
			others = append(others, s.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return failed, nil
	case len(others) > 0:
		return nil, fmt.Errorf("no step of %s in %s has failed; what has: %s", part, w.ID, strings.Join(others, ", "))
	}
	return nil, fmt.Errorf("no step of %s has failed: it is %s", w.ID, w.State)
}

// partOf is the component or action that a step is about.
func partOf(s ctlapi.Step) string {
	if s.Resource != nil {
		return s.Resource.Name
	}
	return api.Value(s.Action)
}
