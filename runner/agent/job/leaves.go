package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/leaves"
	"github.com/berth-dev/berth/runner/agent/manifestsecrets"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/plugins"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/secretstore"
)

// maxTemplate bounds the one template that comes with an artifact.
const maxTemplate = 64 << 20

// openState puts those sealed leaves of the job's state in clear that its
// templates name, and registers their values, so that they are known before the
// engine's first byte. Every other leaf stays sealed: the engine has no use for
// it, and runs code of the vendor's.
func (j *job) openState() (jobspec.Spec, error) {
	spec := j.spec
	rule, _ := order.RuleOf(spec.Kind, spec.Operation)
	if !rule.Leaves {
		spec.State = nil
		return spec, nil
	}
	if len(spec.State) == 0 {
		return spec, nil
	}
	d := json.NewDecoder(bytes.NewReader(spec.State))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return spec, fmt.Errorf("state of the job is not JSON")
	}
	named, err := j.named()
	if err != nil {
		return spec, err
	}
	if err := j.fillSecrets(tree, named); err != nil {
		return spec, err
	}
	purposes := interpolate.SealedLeaves(spec.OrgID, spec.InstallID, tree)
	opened, err := leaves.Open(j.deps.Keys.Open, tree, named, purposes)
	switch {
	case errors.Is(err, seal.ErrNotForUs) && spec.ChangeID != "":
		return spec, sealedForAnother(err)
	case err != nil:
		return spec, fmt.Errorf("sealed values of the job: %w", err)
	}
	j.hideOpened(tree, opened, purposes)
	if p := spec.Pulumi; p != nil {
		marked := *p
		marked.Secrets = leaves.Reading(tree, p.Config)
		spec.Pulumi = &marked
	}
	if spec.Kind == jobspec.KindPlugin {
		opened = plugins.Narrow(opened, func(path []string) bool { return named.Cover(tree, path) })
	}
	if spec.State, err = json.Marshal(opened); err != nil {
		return spec, fmt.Errorf("state of the job: %w", err)
	}
	return spec, nil
}

// fillSecrets brings the customer's secrets to the tree, sealed as they are kept. A plan
// reads the versions that it was ordered for; a run, the newest.
func (j *job) fillSecrets(tree any, named leaves.Names) error {
	if j.deps.Secrets == nil {
		return nil
	}
	hide, err := j.deps.Secrets.Fill(tree, secretstore.Wanted{
		Value: func(name string) bool { return named.Cover(tree, []string{"secrets", name, "value"}) },
		Exact: j.spec.Operation == jobspec.OperationPlan,
	})
	if errors.Is(err, secretstore.ErrMoved) {
		return refuse(jobspec.OutcomeStale, ending.PlannedAgain, "%v", err)
	}
	for _, text := range hide {
		j.hide(text)
	}
	return err
}

// sealedForAnother is the result of a job that reads a value which was sealed for
// the machine that this one replaced: the job is older than the takeover, which
// seals everything again. A new plan reads the value of then.
func sealedForAnother(err error) *refusal {
	r := refuse(jobspec.OutcomeStale, "if this machine took over without the recovery key, nothing sealed before opens here: "+
		"deploy what makes the value, then retry the step", "sealed values of the job: %v", err)
	r.result.Reason = jobspec.ReasonMachineReplaced
	return r
}

// hideOpened registers what was sealed in tree and is opened. Of the manifest of
// a chart only the values of its Secrets are registered. Any other sealed value
// may stand in it too, so all of the tree are then registered, for the log alone:
// the engine gets no more than is opened. If one of them cannot be opened, each
// line of the manifest is taken for a secret.
func (j *job) hideOpened(tree, opened any, purposes seal.Leaves) {
	whole := func(_ []string, value any) { j.hide(value) }
	manifest := false
	learnOpened(tree, opened, nil, func(path []string, _ any) { manifest = manifest || isManifest(tree, path) })
	if !manifest {
		learnOpened(tree, opened, nil, whole)
		return
	}
	all, err := leaves.Open(j.deps.Keys.Open, tree, leaves.Names{{}}, purposes)
	if err != nil {
		learnOpened(tree, opened, nil, whole)
		return
	}
	learnOpened(tree, all, nil, func(path []string, value any) { learnLeaf(tree, path, value, j.hide) })
}

// hide registers a value that was sealed, and keeps it for the record of the
// plan.
func (j *job) hide(value any) {
	j.secrets.add(value, "")
	manifestsecrets.Texts(value, func(text string) {
		if !slices.Contains(j.hidden, text) {
			j.hidden = append(j.hidden, text)
		}
	})
}

// named lists what the templates of the job name: all texts of its spec, and the
// one that comes with the artifact. What a template computes is covered by the
// nearest part that it goes through. One that cannot be read names nothing: the
// engine says what is wrong with it.
func (j *job) named() (leaves.Names, error) {
	spec := j.spec
	spec.State = nil
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	names := leaves.Always()
	add := func(text string) {
		references, err := interpolate.References(text)
		if err != nil {
			return
		}
		for _, r := range references {
			if r.Root == interpolate.RootTree {
				names = append(names, r.Path)
			}
		}
	}
	manifestsecrets.Texts(tree, add)
	for _, secret := range spec.SecretSync.Secrets() {
		names = append(names, []string{"secrets", secret, "value"})
	}
	if file := j.kind().Template; file != "" {
		text, err := j.template(file)
		if err != nil {
			return nil, err
		}
		add(text)
	}
	return names, nil
}

// template is a file of the job's artifact; empty before it was brought.
func (j *job) template(file string) (string, error) {
	root, err := os.OpenRoot(filepath.Join(j.dir.Engine(), "in"))
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	data, _, err := datadir.ReadRegular(root, "artifact/"+file, maxTemplate)
	return string(data), err
}

// hiddenPurpose is that of the list of what a plan had opened.
func (j *job) hiddenPurpose(change string) seal.Purpose {
	purpose := j.pinnedPurpose(change)
	purpose.Path = "hidden"
	return purpose
}

// sealHidden seals what was opened for a plan, for the log of its apply.
func (j *job) sealHidden() ([]byte, error) {
	if len(j.hidden) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(j.hidden)
	if err != nil {
		return nil, err
	}
	return seal.Seal(j.deps.Keys.Recipients(), j.hiddenPurpose(j.spec.ChangeID), raw)
}

// learnHidden registers what the plan of a change had opened.
func (j *job) learnHidden(change string, sealed []byte) error {
	if len(sealed) == 0 {
		return nil
	}
	raw, err := j.deps.Keys.Open(j.hiddenPurpose(change), sealed)
	if err != nil {
		return fmt.Errorf("what the log of the plan hid: %w", err)
	}
	var texts []string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return fmt.Errorf("what the log of the plan hid is damaged")
	}
	for _, text := range texts {
		j.secrets.add(text, "")
	}
	return nil
}

// learnAgain registers what an earlier agent knew of this attempt.
func (j *job) learnAgain() error {
	if j.attempt.Phase == recovery.Claimed {
		return nil // no engine began, and maybe nobody ordered it
	}
	if j.mutates() && j.tick == nil {
		record, found, err := j.planRecord()
		if err != nil || !found {
			return err
		}
		return j.learnHidden(j.spec.ChangeID, record.Hidden)
	}
	j.learnBuild()
	if _, err := j.learnLive(); err != nil {
		return err
	}
	_, err := j.openState()
	return err
}

// originID is the origin of the change, by the order, which was verified when
// the attempt began.
func (j *job) originID() string {
	if j.order.JobID == "" && j.attempt.Assignment.Order != nil {
		_, _ = capsule.Verify(j.deps.Trusted.Dispatch, capsule.OrderType, *j.attempt.Assignment.Order, &j.order)
	}
	return j.order.OriginID
}
