package rehearse

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// mostRounds bounds how often the app is tried, each time without what failed before.
const mostRounds = 40

// suffix ends the names of apps that are only for rehearsals.
const suffix = "-rehearsal"

// rounds tries the app until all of it came to an end: each round leaves out what
// failed in the one before. It returns the last workflow, nil when nothing could be
// built.
func (r *run) rounds(ctx context.Context) (*ctlapi.Workflow, error) {
	var last *ctlapi.Workflow
	for round := range mostRounds {
		released, again, err := r.release(ctx, round)
		if err != nil {
			return last, err
		}
		if again {
			continue
		}
		began := r.Now()
		w, err := r.provision(ctx, released)
		if err != nil {
			return last, err
		}
		r.spent("deploy", began)
		last = w
		again, err = r.learn(ctx, *w)
		if err != nil || !again {
			return last, err
		}
		if r.leftovers {
			if err := r.startOver(ctx, round); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

// spent notes how long a part of the rehearsal took.
func (r *run) spent(what string, began time.Time) {
	seconds := r.Now().Sub(began).Seconds()
	for i := range r.parts {
		if r.parts[i].Name == what {
			r.parts[i].Seconds += seconds
			return
		}
	}
	r.parts = append(r.parts, Span{what, seconds})
}

// release syncs the folder with its stand-ins and waits for the release. again is
// true when builds failed: their parts have stand-ins now.
func (r *run) release(ctx context.Context, round int) (_ *ctlapi.SyncResult, again bool, _ error) {
	began := r.Now()
	dir, err := os.MkdirTemp("", "berth-rehearsal-")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is needed again
	if err := stage.Write(r.folder, dir, r.app, r.changes); err != nil {
		return nil, false, err
	}
	var said strings.Builder
	r.sync.Say = r.Err
	if round > 0 {
		r.sync.Say = &said // the same again
	}
	read, err := sync.Read(ctx, dir, r.sync)
	if err != nil {
		for line := range strings.Lines(said.String()) {
			output.Println(r.Err, strings.TrimSuffix(line, "\n"))
		}
		return nil, false, err
	}
	if err := sync.Upload(ctx, r.client, read.Archives, io.Discard); err != nil {
		return nil, false, err
	}
	read.Request.Origin = sync.Origin(ctx, r.folder, "")
	if r.own {
		read.Request.Prune, read.Request.Confirm = true, read.App // nothing real is in it
	}
	resp, err := r.client.SyncAppWithResponse(ctx, read.App, &ctlapi.SyncAppParams{}, read.Request)
	if err != nil {
		return nil, false, err
	}
	result, err := api.Body(resp.JSON201, resp.JSON200)
	if err != nil {
		return nil, false, err
	}
	if err := r.makeUpVariables(ctx); err != nil {
		return nil, false, err
	}
	trouble, err := r.await(ctx, result)
	r.spent("build", began)
	if err != nil || len(trouble) == 0 {
		return result, false, err
	}
	slices.SortFunc(trouble, func(a, b ctlapi.ConfigItem) int { return strings.Compare(a.Component, b.Component) })
	tried := maps.Clone(r.changes.StandIns)
	for _, item := range trouble {
		users := stage.UsersOf(r.app, item.Component, string(item.Kind))
		if !slices.ContainsFunc(users, func(part stage.Part) bool { return tried[part] == "" }) {
			return nil, false, fmt.Errorf("the stand-in of %s cannot be built: %s", item.Component, api.Value(item.BuildError))
		}
		for _, part := range users {
			if r.changes.StandIns[part] == "" { // of several builds of a part the first says why
				r.leaveOut(part, judgeBuild(item))
			}
		}
	}
	return nil, true, nil
}

// leaveOut gives a part a stand-in from now on.
func (r *run) leaveOut(part stage.Part, l Line) {
	r.changes.Add(r.app, part, l.Why)
	r.judged[part] = l
	r.screen.Print(fmt.Sprintf("%s  %s: %s: %s", r.Now().Format(time.TimeOnly), part, l.Verdict, l.Why))
}

// makeUpVariables sets the variables that templates read and the app does not have,
// in an app that is only for rehearsals.
func (r *run) makeUpVariables(ctx context.Context) error {
	reads := check.NamedVariableReads(r.app)
	if !r.own || len(reads) == 0 {
		return nil
	}
	plain := false
	for _, read := range reads {
		value := ctlapi.AppVariableRequest{Value: "rehearsal-" + read.Variable, Sensitive: &plain}
		if _, err := r.client.SetAppVariableWithResponse(ctx, r.sync.App, read.Variable, &ctlapi.SetAppVariableParams{}, value); err != nil {
			return err
		}
	}
	return nil
}

const (
	// longPoll is how long one question about builds may be held.
	longPoll = "5s"
	// patience is how long a source may take that cannot be had now.
	patience = 5 * time.Second
	// tryingAgain ends what a build says that will ask its source again.
	tryingAgain = "; trying again"
)

// await waits for the release of a config, or for all of its builds to have ended or
// to be without hope. It returns the latter.
func (r *run) await(ctx context.Context, result *ctlapi.SyncResult) ([]ctlapi.ConfigItem, error) {
	if result.Release != nil {
		return nil, nil
	}
	var noted time.Time
	var after int64
	told := map[string]string{}
	for {
		params := &ctlapi.GetConfigParams{AfterVersion: &after}
		if after > 0 {
			params.Wait = api.Optional(longPoll)
		}
		resp, err := r.client.GetConfigWithResponse(ctx, api.Value(result.Config).ID, params)
		if err != nil {
			return nil, err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return nil, err
		}
		after = max(config.Version, 1)
		if config.State == ctlapi.ConfigStateReleased {
			result.Release = config.Release
			return nil, nil
		}
		b := sort(config.Items)
		for _, item := range config.Items {
			if state := string(item.BuildState); told[item.Component] != state && state != string(ctlapi.BuildStateQueued) {
				told[item.Component] = state
				r.screen.Print(fmt.Sprintf("%s  build of %s: %s", r.Now().Format(time.TimeOnly), item.Component, state))
			}
		}
		if len(b.noted) > 0 && noted.IsZero() {
			noted = r.Now()
		}
		if b.open > 0 || len(b.noted) > 0 && r.Now().Sub(noted) < patience {
			continue
		}
		if len(b.noted)+len(b.failed) == 0 {
			continue // the release is being made
		}
		for _, item := range b.noted {
			if _, err := r.client.CancelBuildWithResponse(ctx, item.BuildID, &ctlapi.CancelBuildParams{}); err != nil {
				return nil, err
			}
		}
		return append(b.failed, b.noted...), nil
	}
}

// builds are those of a config, by how they stand.
type builds struct {
	open          int                 // they run, or will
	noted, failed []ctlapi.ConfigItem // noted: their source cannot be had now
}

func sort(items []ctlapi.ConfigItem) (b builds) {
	for _, item := range items {
		switch item.BuildState {
		case ctlapi.BuildStateSucceeded:
		case ctlapi.BuildStateFailed, ctlapi.BuildStateCancelled:
			b.failed = append(b.failed, item)
		default:
			if strings.HasSuffix(api.Value(item.BuildError), tryingAgain) {
				b.noted = append(b.noted, item)
			} else {
				b.open++
			}
		}
	}
	return b
}

// provision makes the install in the first round, and provisions it with the release.
func (r *run) provision(ctx context.Context, released *ctlapi.SyncResult) (*ctlapi.Workflow, error) {
	if released.Release == nil {
		return nil, fmt.Errorf("the sync made no release")
	}
	if r.install == nil {
		install, err := r.create(ctx, released.Release.ID)
		if err != nil {
			return nil, err
		}
		r.install = install
	}
	resp, err := r.client.CreateWorkflowWithResponse(ctx, r.install.ID, &ctlapi.CreateWorkflowParams{}, ctlapi.WorkflowRequest{
		Kind: ctlapi.WorkflowKindProvision, Release: &released.Release.ID, ApproveAll: true,
	})
	if err != nil {
		return nil, err
	}
	w, err := api.Body(resp.JSON202)
	if err != nil {
		return nil, err
	}
	follower := follow.Follower{Client: r.client, Screen: r.screen, Automatic: true, Now: r.Now,
		Ask: func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Approve, nil }}
	done, err := follower.Run(ctx, w.ID)
	if err != nil {
		return nil, err
	}
	return r.client.Workflow(ctx, done.ID)
}

// onCluster tells whether a part is really deployed to a cluster.
func (r *run) onCluster(part stage.Part) bool {
	c := r.app.Component(part.Name())
	return r.cluster && part.Kind() == appconfig.BlockComponent && c != nil && jobspec.Kinds[jobspec.OfComponent(string(c.Type))].OnCluster
}

// startOver removes the install, with what parts that failed left in the cluster: their
// stand-ins know nothing of it. The next round has an install of its own.
func (r *run) startOver(ctx context.Context, round int) error {
	r.leftovers = false
	if err := r.remove(ctx); err != nil {
		return err
	}
	r.install = nil
	if r.first == "" {
		r.first = r.name
	}
	r.name = fmt.Sprintf("%s-%d", r.first, round+2)
	return nil
}

// remove deprovisions the install.
func (r *run) remove(ctx context.Context) error {
	began := r.Now()
	resp, err := r.client.CreateWorkflowWithResponse(ctx, r.install.ID, &ctlapi.CreateWorkflowParams{}, ctlapi.WorkflowRequest{
		Kind: ctlapi.WorkflowKindDeprovision, ApproveAll: true, Confirm: r.install.Name,
	})
	if err != nil {
		return err
	}
	w, err := api.Body(resp.JSON202)
	if err != nil {
		return err
	}
	follower := follow.Follower{Client: r.client, Screen: r.screen, Automatic: true, Now: r.Now,
		Ask: func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Approve, nil }}
	done, err := follower.Run(ctx, w.ID)
	if err != nil {
		return err
	}
	r.spent("remove", began)
	if done.State != ctlapi.WorkflowStateSucceeded {
		return fmt.Errorf("install %s is not removed: look at it with berth why %s", r.install.Name, r.install.Name)
	}
	return nil
}

func (r *run) create(ctx context.Context, release string) (*ctlapi.Install, error) {
	r.flags.Rehearse = true
	rehearsed, err := r.flags.Request(r.Err)
	if err != nil {
		return nil, err
	}
	rehearsed.NoCluster = !r.cluster
	if r.name == "" {
		random := make([]byte, 2) // rehearsals of several apps may begin in the same second
		_, _ = rand.Read(random)  // never fails
		r.name = "rehearsal-" + r.beganAt.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random)
	}
	request := ctlapi.InstallRequest{
		Name: r.name, App: r.sync.App, Customer: cmp.Or(r.first, r.name), CreateCustomer: true, Rehearsal: rehearsed, Release: &release,
		Stack: api.Optional(ctlapi.StackKind(r.stack)),
	}
	values := ctlapi.InputValues(madeUpInputs(r.app))
	maps.Copy(values, r.inputs)
	if len(values) > 0 {
		request.Inputs = &values
	}
	resp, err := r.client.CreateInstallWithResponse(ctx, &ctlapi.CreateInstallParams{}, request)
	if err != nil {
		return nil, err
	}
	install, err := api.Body(resp.JSON201)
	if err != nil {
		return nil, err
	}
	if install.Stack == ctlapi.StackKindKubernetes {
		r.screen.Print(fmt.Sprintf("the rehearsal waits for the cluster: run there what berth installs stack %s --new prints", install.Name))
	}
	on := ctlapi.ComponentToggles{} // all of the app is tried
	for i := range r.app.Components {
		if c := &r.app.Components[i]; !c.EnabledIn(nil) {
			on[c.Name] = true
		}
	}
	if len(on) == 0 {
		return install, nil
	}
	_, err = r.client.UpdateInstallWithResponse(ctx, install.ID, &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{ComponentToggles: &on})
	return install, err
}

// madeUpInputs are values for the inputs that are required and have no default.
func madeUpInputs(app *appconfig.App) map[string]string {
	values := map[string]string{}
	for _, in := range app.Inputs {
		if in.Required && in.Default == nil {
			values[in.Name] = rehearsal.Input(app, in)
		}
	}
	return values
}

// learn judges the steps that ended, and gives stand-ins to those that failed. again
// is true when the app is to be tried once more.
func (r *run) learn(ctx context.Context, w ctlapi.Workflow) (again bool, _ error) {
	madeUp, err := r.madeUp(ctx)
	if err != nil {
		return false, err
	}
	succeededFirst := slices.SortedStableFunc(slices.Values(w.Steps), func(a, b ctlapi.Step) int {
		return failedLast(a) - failedLast(b)
	})
	for _, step := range succeededFirst {
		part, ok := partOf(step)
		if !ok {
			continue
		}
		switch step.State {
		case ctlapi.StepStateSucceeded:
			if _, judged := r.judged[part]; judged {
				continue // of its stand-in, or of a deploy that changes nothing
			}
			var change *ctlapi.Change
			if step.Change != nil {
				if change, err = r.client.Change(ctx, step.Change.ID); err != nil {
					return false, err
				}
			}
			l := judge(step, change)
			if r.changes.StandIns[part] != "" {
				l.Verdict, l.Why = NotPlanned, r.changes.StandIns[part]
			}
			r.judged[part] = l
		case ctlapi.StepStateFailed:
			if r.changes.StandIns[part] != "" {
				return false, nil // its stand-in fails: the rest is beyond help
			}
			l := judge(step, nil)
			l.Verdict, l.Why = judgeFailure(failure{
				Part: part, Error: api.Value(step.Error), Reads: stage.Reads(r.app, part, madeUp), OnCluster: r.onCluster(part),
			})
			r.leftovers = r.leftovers || r.onCluster(part) && r.stack == string(ctlapi.StackKindLocal)
			r.leaveOut(part, l)
			again = true
		}
	}
	return again, nil
}

func failedLast(s ctlapi.Step) int {
	if s.State == ctlapi.StepStateFailed {
		return 1
	}
	return 0
}

// madeUp tells which paths of the state tree are made up, or of a stand-in.
func (r *run) madeUp(ctx context.Context) (func(string) bool, error) {
	install, err := r.client.Install(ctx, r.install.ID)
	if err != nil {
		return nil, err
	}
	var paths []string
	if install.Rehearsal != nil {
		for _, o := range install.Rehearsal.Outputs {
			if o.Source == ctlapi.RehearsalOutputSourceMadeUp && !r.isReal(o.Path) {
				paths = append(paths, o.Path)
			}
		}
	}
	for in := range madeUpInputs(r.app) {
		if _, given := r.inputs[in]; !given {
			paths = append(paths, "inputs.inputs."+in)
		}
	}
	for part := range r.changes.StandIns {
		kind, name, _ := strings.Cut(string(part), "/")
		if kind == appconfig.BlockAction {
			paths = append(paths, "actions.workflows."+name)
		}
	}
	return func(path string) bool {
		return strings.HasPrefix(path, "secrets.") || slices.ContainsFunc(paths, func(p string) bool {
			return p == path || strings.HasPrefix(path, p+".") || strings.HasPrefix(p, path+".")
		})
	}, nil
}

// isReal tells whether a path is an output of a part that was really deployed.
func (r *run) isReal(path string) bool {
	part := stage.Sandbox
	if rest, ok := strings.CutPrefix(path, "components."); ok {
		name, _, _ := strings.Cut(rest, ".")
		part = stage.Component(name)
	} else if !strings.HasPrefix(path, "sandbox.") {
		return false
	}
	l, judged := r.judged[part]
	return judged && l.Verdict == Real
}

// partOf is the part that a step is about; false for one that only waits.
func partOf(step ctlapi.Step) (stage.Part, bool) {
	switch {
	case step.Action != nil && *step.Action != "":
		return stage.Action(*step.Action), true
	case step.Resource != nil && step.Resource.Kind == appconfig.BlockSandbox:
		return stage.Sandbox, true
	case step.Resource != nil && step.Resource.Kind == appconfig.BlockComponent:
		return stage.Component(step.Resource.Name), true
	}
	return "", false
}
