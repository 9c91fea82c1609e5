package rehearse

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

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
