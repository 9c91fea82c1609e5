package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
)

// record is what a plan pins in addition to what the plugin did.
type record struct {
	Digest string   `json:"digest"` // of the plugin's artifact
	Signer string   `json:"signer"`
	Hidden []string `json:"hidden,omitempty"` // values that no output may show
}

const (
	recordFile = "plugin.json"
	pinnedDir  = "plugin"
)

// Plan has the plugin plan.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	p, err := admit(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	defer p.close()
	config, err := p.config()
	if err != nil {
		return jobspec.Result{}, err
	}
	if err := job.WriteJSON(j.Out("inputs.json"), config); err != nil {
		return jobspec.Result{}, err
	}
	rec := record{Digest: j.Spec.Artifact.Digest, Signer: p.given.Signer, Hidden: p.hidden(config)}
	if err := p.enter(config, "previous"); err != nil {
		return jobspec.Result{}, err
	}
	said, err := p.run(ctx)
	if err == nil {
		err = p.checkState(true)
	}
	if err != nil {
		return p.result(), err
	}
	plan, err := p.readPlan(said, rec.Hidden)
	if err != nil {
		return p.result(), err
	}
	result := p.result()
	result.NoChange = plan.Summary.NoChange
	err = errors.Join(
		job.WriteJSON(j.Out("plan.canonical.json"), plan),
		job.WriteJSON(j.Out("plan.summary.json"), plan.Summary),
	)
	if err == nil && !result.NoChange {
		err = errors.Join(p.takePinned(), job.WriteJSON(j.Out("pinned", recordFile), rec))
	}
	if err == nil {
		err = leaveDocuments(j, plan)
	}
	if err == nil {
		err = p.takeOutputs(ctx, &result, rec.Hidden)
	}
	return result, err
}

// Apply has the plugin apply what its plan pinned.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	p, err := admit(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	defer p.close()
	var rec record
	if err := job.ReadJSON(j.In("pinned", recordFile), &rec); err != nil {
		return jobspec.Result{}, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if rec.Digest != j.Spec.Artifact.Digest || rec.Signer != p.given.Signer {
		return jobspec.Result{}, job.Refusef("plan again", "%s: the plan was made by another version of the plugin", j.Subject()).
			Differing("plugin_digest", rec.Digest, j.Spec.Artifact.Digest)
	}
	if err := p.enter(nil, "pinned"); err != nil {
		return jobspec.Result{}, err
	}
	if err := job.Unbegun(ctx, j); err != nil {
		return jobspec.Result{}, err
	}
	_, err = p.run(ctx)
	if err == nil {
		err = p.checkState(false)
	}
	result := p.result()
	if err != nil {
		return result, err
	}
	return result, p.takeOutputs(ctx, &result, rec.Hidden)
}

// result names the tool. Nothing else of a result is the plugin's to say.
func (p *admitted) result() jobspec.Result {
	return jobspec.Result{Tool: &jobspec.Tool{Name: "plugin " + p.manifest.Type, Version: p.manifest.Version, Digest: p.job.Spec.Artifact.Digest}}
}

// hidden are the texts of the config's secrets.
func (p *admitted) hidden(config map[string]any) []string {
	var all []string
	for _, name := range p.manifest.Config.Secrets() {
		if text, ok := config[name].(string); ok && len(text) >= shortestSecret {
			all = append(all, text)
		}
	}
	return all
}

// shortestSecret is how long a text is at least that is looked for: a shorter one
// would be found everywhere.
const shortestSecret = 4

// dir is the plugin's own job directory.
func (p *admitted) dir(path ...string) string {
	return p.job.Work(append([]string{"plugin"}, path...)...)
}

// enter fills the directory. from is what an earlier job pinned, "pinned" or
// "previous".
func (p *admitted) enter(config map[string]any, from string) error {
	spec := jobspec.Spec{
		Version: plugin.Contract, JobID: p.job.Spec.JobID, OrgID: p.job.Spec.OrgID, InstallID: p.job.Spec.InstallID, Kind: p.job.Spec.Kind,
		Operation: p.job.Spec.Operation, Destroy: p.job.Spec.Destroy, ChangeID: p.job.Spec.ChangeID, Resource: p.job.Spec.Resource,
		Continues: p.job.Spec.Continues, Fence: p.job.Spec.Fence, TimeoutSeconds: p.job.Spec.TimeoutSeconds,
	}
	given := p.given.Accepted()
	given.Config = config
	spec.Plugin = &given
	if err := errors.Join(plugin.WriteJob(p.dir(), spec), p.enterState()); err != nil {
		return err
	}
	source := p.job.In(from, pinnedDir)
	if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.CopyFS(p.dir("in", from), os.DirFS(source))
}

// plan is what people approve of a plugin's plan: all that it says and shows.
type plan struct {
	Type    string              `json:"type"`
	Version string              `json:"version"`
	Plan    json.RawMessage     `json:"plan"`
	Summary jobspec.PlanSummary `json:"summary"`
}

// readPlan reads what a plan of the plugin left, and checks that it fits together.
func (p *admitted) readPlan(said report, hidden []string) (plan, error) {
	out := plan{Type: p.manifest.Type, Version: p.manifest.Version}
	raw, err := p.readOut("plan.canonical.json", maxPlan)
	if err != nil {
		return out, p.brokenf("%v", err)
	}
	if out.Plan = raw; !json.Valid(raw) {
		return out, p.brokenf("its plan.canonical.json is not JSON")
	}
	if raw, err = p.readOut("plan.summary.json", maxPlan); err != nil {
		return out, p.brokenf("%v", err)
	}
	if err := json.Unmarshal(raw, &out.Summary); err != nil {
		return out, p.brokenf("its plan.summary.json cannot be read: %v", err)
	}
	if showsSecret(string(raw), hidden) {
		return out, p.brokenf("its summary shows a secret of its config")
	}
	out.Summary.Rehearsed, out.Summary.NotShownBytes = nil, 0
	counts := out.Summary.Counts()
	nothing := counts.Create+counts.Update+counts.Replace+counts.Delete+counts.Run+counts.Outputs+len(counts.Other) == 0
	if said.NoChange || out.Summary.NoChange {
		if !nothing {
			return out, p.brokenf("it says that nothing changes, and lists %s", counts)
		}
		out.Summary.NoChange = true
	}
	if !out.Summary.NoChange && nothing {
		return out, p.brokenf("its plan has changes and lists none")
	}
	return out, nil
}

// takePinned copies what the plugin pinned to what this job pins.
func (p *admitted) takePinned() error {
	root, err := os.OpenRoot(p.dir("out"))
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat("pinned"); err != nil || !info.IsDir() {
		return p.brokenf("its plan has changes and pinned nothing")
	}
	pinned, err := root.OpenRoot("pinned")
	if err != nil {
		return err
	}
	defer pinned.Close()
	to := p.job.Out("pinned", pinnedDir)
	if err := copyFiles(to, pinned.FS()); err != nil {
		return p.brokenf("what it pinned: %v", err)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) == 0 {
		return p.brokenf("its plan has changes and pinned nothing")
	}
	return nil
}

func (p *admitted) brokenf(format string, args ...any) error {
	return job.Wrongf("report this to the plugin's author", "%s: plugin %s %s breaks the contract: %s", p.job.Subject(), p.manifest.Type, p.manifest.Version, fmt.Sprintf(format, args...))
}

// leaveDocuments leaves what the plugin shows of its plan: nobody else knows what it does.
func leaveDocuments(j *job.Job, p plan) error {
	body := policy.Changes{Type: p.Type, Changes: []policy.Change{}}
	for _, o := range p.Summary.Objects {
		c := policy.Change{Address: o.Address, Action: o.Action, Reason: o.Reason}
		for _, f := range o.Fields {
			c.Fields = append(c.Fields, policy.ChangeField(f))
		}
		body.Changes = append(body.Changes, c)
	}
	d, err := documents.With(j, policy.FormChanges, "plan of "+j.Subject(), body)
	if err != nil {
		return err
	}
	return documents.Leave(j, []policy.Document{d})
}
