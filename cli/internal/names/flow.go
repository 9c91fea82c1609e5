package names

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/id"
)

// Change returns the id of a change: by its id, or by its install (acme) or
// component (acme/web). Then it is the one that waits for a decision; unless
// waiting is asked for, it is the newest when none does.
func (b Book) Change(ctx context.Context, typed string, waiting bool) (string, error) {
	switch {
	case isID(typed) && isWhole(typed):
		return typed, nil
	case isID(typed):
		return b.begins(ctx, Change, typed)
	}
	name, part, err := b.inInstall(ctx, typed)
	if err != nil {
		return "", err
	}
	proposed, err := b.proposed(ctx, name)
	if err != nil {
		return "", err
	}
	things := proposals(proposed)
	r := Find(join(name, part), things)
	switch {
	case r.Found:
		return r.One.ID, nil
	case len(r.Several) > 0:
		return "", ambiguous(typed, r.Several)
	case waiting:
		return "", nothingWaits(name, part, things)
	}
	all, err := b.Client.Changes(ctx, api.PageSize, ctlapi.ListChangesParams{Install: &name})
	if err != nil {
		return "", err
	}
	for _, change := range all { // newest first
		if part == "" || change.Resource != nil && change.Resource.Name == part {
			return change.ID, nil
		}
	}
	return "", &Unknown{What: join(name, part) + " has had no change yet", List: "berth changes list --install " + name}
}

// inInstall reads acme or acme/web, and resolves the install.
func (b Book) inInstall(ctx context.Context, typed string) (name, part string, err error) {
	name, part, _ = strings.Cut(typed, "/")
	install, err := b.Install(ctx, name)
	if err != nil {
		return "", "", err
	}
	return install.Name, part, nil
}

func join(install, part string) string {
	if part == "" {
		return install
	}
	return install + "/" + part
}

func (b Book) proposed(ctx context.Context, install string) ([]ctlapi.ChangeSummary, error) {
	return b.Client.Changes(ctx, 0, ctlapi.ListChangesParams{Install: &install, State: new(ctlapi.ChangeStateProposed)})
}

// proposals are the changes that can be meant when somebody decides. The scripts
// of a release are decided together with another change of their workflow, and
// stand for themselves only where there is none.
func proposals(proposed []ctlapi.ChangeSummary) []Thing {
	others := map[string]bool{} // workflows with more than scripts of a release
	for _, change := range proposed {
		others[change.WorkflowID] = others[change.WorkflowID] || change.Kind != ctlapi.ChangeKindAccept
	}
	var things []Thing
	for _, change := range proposed {
		if change.Kind != ctlapi.ChangeKindAccept || !others[change.WorkflowID] {
			things = append(things, ofChange(change))
		}
	}
	return things
}

func ofChange(change ctlapi.ChangeSummary) Thing {
	thing := Thing{ID: change.ID, Names: []string{change.Install.Name}}
	what := change.Install.Name
	if change.Resource != nil {
		what = join(what, change.Resource.Name)
		thing.Names = append(thing.Names, what)
	}
	thing.About = fmt.Sprintf("%s: %s, %s", what, changes.Counts(change.Kind, change.Counts), change.State)
	return thing
}

func nothingWaits(install, part string, waiting []Thing) error {
	text := "nothing of " + join(install, part) + " waits for a decision"
	for i, thing := range waiting {
		sep := ", "
		if i == 0 {
			sep = "; what waits: "
		}
		text += sep + thing.Names[len(thing.Names)-1]
	}
	if len(waiting) > 0 {
		return &Unknown{What: text}
	}
	return &Unknown{What: text, List: "berth why " + install}
}

// Workflow returns the id of a workflow: by its id, by one of its changes, or by
// its install. Then it is the one that is open; when none is, the newest.
func (b Book) Workflow(ctx context.Context, typed string) (string, error) {
	switch {
	case strings.HasPrefix(typed, "chg_"):
		id, err := b.Change(ctx, typed, false)
		if err != nil {
			return "", err
		}
		change, err := b.Client.Change(ctx, id)
		if err != nil {
			return "", err
		}
		return change.WorkflowID, nil
	case isID(typed) && isWhole(typed):
		return typed, nil
	case isID(typed):
		return b.begins(ctx, Workflow, typed)
	}
	install, err := b.Install(ctx, typed)
	if err != nil {
		return "", err
	}
	all, err := b.Client.Workflows(ctx, api.PageSize, ctlapi.ListWorkflowsParams{Install: &install.ID})
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", &Unknown{What: fmt.Sprintf("install %s has had no workflow yet", install.Name)}
	}
	var open []Thing
	for _, w := range all {
		if !follow.Finished(w.State) {
			open = append(open, ofWorkflow(w))
		}
	}
	if len(open) == 0 {
		return all[0].ID, nil
	}
	return b.outcome(Workflow, typed, Find(install.Name, open))
}

func ofWorkflow(w ctlapi.Workflow) Thing {
	what := strings.ReplaceAll(string(w.Kind), "_", " ") + " of " + w.Install.Name
	if w.Release != nil {
		what += fmt.Sprintf(", release %d", w.Release.Number)
	}
	return Thing{ID: w.ID, Names: []string{w.Install.Name}, About: fmt.Sprintf("%s, %s, by %s", what, w.State, w.CreatedBy)}
}

// Asking returns the workflow that a person means who wants to approve all that
// it proposes: of an install's open workflows, the one that waits for them.
func (b Book) Asking(ctx context.Context, typed string) (string, error) {
	if isID(typed) {
		return b.Workflow(ctx, typed)
	}
	install, err := b.Install(ctx, typed)
	if err != nil {
		return "", err
	}
	proposed, err := b.proposed(ctx, install.Name)
	if err != nil {
		return "", err
	}
	waiting := map[string]bool{}
	for _, change := range proposed {
		waiting[change.WorkflowID] = true
	}
	if len(waiting) == 1 {
		return proposed[0].WorkflowID, nil
	}
	return b.Workflow(ctx, install.Name)
}

// Retry returns what to try again with short names and ids written out: a step, a
// workflow, an install, or one of its components.
func (b Book) Retry(ctx context.Context, typed string) (string, error) {
	switch {
	case strings.HasPrefix(typed, "stp_"):
		return typed, nil
	case isID(typed):
		return b.Workflow(ctx, typed)
	}
	name, part, err := b.inInstall(ctx, typed)
	return join(name, part), err
}

// Log returns what has a log with short names and ids written out.
func (b Book) Log(ctx context.Context, typed string) (string, error) {
	if isID(typed) {
		prefix, _, _ := id.Cut(typed)
		kind, ok := map[string]Kind{"chg": Change, "wfl": Workflow, "bld": Build, "arn": Run}[prefix]
		if !ok || isWhole(typed) {
			return typed, nil
		}
		return b.begins(ctx, kind, typed)
	}
	name, part, err := b.inInstall(ctx, typed)
	return join(name, part), err
}
