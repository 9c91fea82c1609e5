package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/agent/inits"
	"github.com/berth-dev/berth/runner/agent/mirrors"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/states"
	"github.com/berth-dev/berth/runner/agent/toolchain"
)

// terraformRemedy is what to do about a version that is missing.
func terraformRemedy(tool string) string {
	program, mirror := "terraform", "--terraform-mirror"
	if tool == jobspec.ToolOpenTofu {
		program, mirror = tfprogram.OpenTofu.Program, "--opentofu-mirror"
	}
	return "put it into a directory as VERSION/" + program + " and name that with " + mirror + ", or change terraform_version; --terraform-downloads allow fetches exact versions, --terraform-match minor takes another patch"
}

// findTerraform chooses the Terraform of a job: for a plan by what the module asks for,
// for an apply the very file that the plan was made with.
func (j *job) findTerraform(ctx context.Context) error {
	box := j.deps.Engine.Terraforms
	if box == nil || j.spec.TerraformModule == nil || j.spec.Operation == jobspec.OperationBuild {
		return nil
	}
	if j.mutates() {
		return j.findPinnedTerraform(ctx, box)
	}
	if done, err := j.findLiveTerraform(ctx, box); done || err != nil {
		return err
	}
	tool, want := j.spec.TerraformModule.Tool, j.spec.TerraformModule.TerraformVersion
	path, err := box.For(ctx, tool, want)
	if err != nil && j.spec.Rehearsal != nil {
		// What is only planned with mocked providers works with any version; of the
		// rest the engine says that its own is missing.
		if other, none := box.For(ctx, tool, ""); none == nil {
			path, err = other, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, toolchain.ErrNone), errors.Is(err, tfprogram.ErrUntrusted):
		r := refuse(jobspec.OutcomeRefused, terraformRemedy(tool), "%s: %v", j.spec.Resource.Name, err)
		r.result.Differs = []jobspec.Difference{{Field: "terraform_version", Want: want, Got: err.Error()}}
		return r
	case err != nil:
		return refuse(jobspec.OutcomeFailed, terraformRemedy(tool), "%s: %v", j.spec.Resource.Name, err)
	}
	return j.useTerraform(path)
}

// findPinnedTerraform finds the executable of the plan. Where it is gone the order is
// refused, with everything else that differs.
func (j *job) findPinnedTerraform(ctx context.Context, box *toolchain.Tools) error {
	record, found, err := j.planRecord()
	if err != nil || !found || record.Effect.Tool.Digest == "" {
		return err
	}
	path, err := box.Pinned(ctx, jobspec.Tool(record.Effect.Tool))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, toolchain.ErrGone):
		j.terraformGone = err.Error()
		return nil
	case err != nil:
		return err
	}
	return j.useTerraform(path)
}

// findLiveTerraform has a look for drift work with the executable of the live change; done
// is false for other jobs, and where it is gone: a look writes nothing, so that another one
// that the module takes does too.
func (j *job) findLiveTerraform(ctx context.Context, box *toolchain.Tools) (done bool, err error) {
	if j.spec.Operation != jobspec.OperationDrift {
		return false, nil
	}
	record, found, err := j.planOf(j.spec.Drift.Change)
	if err != nil || !found || record.Effect.Tool.Digest == "" {
		return false, err
	}
	path, err := box.Pinned(ctx, jobspec.Tool(record.Effect.Tool))
	if errors.Is(err, toolchain.ErrGone) && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, j.useTerraform(path)
}

// useTerraform notes the executable of the job, if its engine can get to it.
func (j *job) useTerraform(path string) error {
	j.mu.Lock()
	j.attempt.Terraform = path // on disk with the next phase
	iso := j.attempt.Isolation
	j.mu.Unlock()
	if iso.Hidden && j.ownTool(path) || iso.OwnUsers || j.deps.Engine.InPods {
		return nil
	}
	if err := process.Reachable(path, iso.UID, iso.GID); err != nil {
		return refuse(jobspec.OutcomeRefused, "", "terraform: %v", err)
	}
	return nil
}

// terraform is the executable of the job, "" when there is none.
func (j *job) terraform() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return cmp.Or(j.attempt.Terraform, j.deps.Engine.Terraform)
}

// initBasis is what an init of the job's module depends on; ok is false where there is
// none, or it is not known.
func (j *job) initBasis() (b inits.Basis, ok bool) {
	if !j.kind().HasState || j.spec.Resource == nil || j.spec.Artifact == nil || j.terraform() == "" {
		return b, false
	}
	b.Artifact = j.spec.Artifact.Digest
	b.Config = inits.ConfigDigest(cmp.Or(j.deps.Engine.TerraformConfig, os.Getenv(mirrors.Config)), mirrors.Settings()...)
	var noTerraform, noEngine error
	b.Terraform, noTerraform = j.deps.Digests.Of(j.terraform())
	b.Engine, noEngine = j.deps.Digests.Of(j.deps.Engine.Path)
	return b, noTerraform == nil && noEngine == nil
}

// giveInit gives the engine what the init of an earlier job found out.
func (j *job) giveInit() error {
	b, ok := j.initBasis()
	if !ok {
		return nil
	}
	known := inits.Store{Dir: j.deps.Dir.Inits()}.Get(j.spec.Resource.ID, b)
	if known == nil {
		return nil
	}
	return os.WriteFile(j.dir.In(inits.Name), known, 0o600)
}

// keepInit keeps what this job's found out. Without it the next one runs an init.
func (j *job) keepInit(ctx context.Context) {
	raw, found, err := j.dir.ReadOut("out/"+inits.Name, inits.MaxBytes)
	b, ok := j.initBasis()
	if err == nil && found && ok {
		err = inits.Store{Dir: j.deps.Dir.Inits()}.Put(j.spec.Resource.ID, b, raw)
	}
	if err != nil {
		j.log.WarnContext(ctx, "what terraform init found out is not kept", "err", err)
	}
}

// keepState keeps a state for the customer. The control plane has it too, so that the job
// goes on without.
func (j *job) keepState(lineage string, serial int64, digest string, sealed []byte) {
	r := j.spec.Resource
	err := j.states().Put(states.Kept{
		ResourceID: r.ID, Kind: r.Kind, Name: r.Name, Lineage: lineage, Serial: serial, Digest: digest,
		JobID: j.id, At: j.deps.Now().UTC(), Sealed: sealed, Tool: j.writesWith(),
	})
	if err != nil {
		j.log.Warn("state is not kept on this machine", "err", err)
	}
}

// states are those that this machine keeps.
func (j *job) states() states.Store { return states.Store{Dir: j.deps.Dir.States()} }

// writesWith is the tool that writes the job's states, "" for a job that writes none.
func (j *job) writesWith() string {
	if path := j.terraform(); j.mutates() && path != "" {
		return tfprogram.Of(path).Tool
	}
	return ""
}

// toldTool says above a plan that another tool wrote the state which it begins with.
func (j *job) toldTool(result *jobspec.Result, s *jobspec.PlanSummary) {
	if j.proxy == nil || result.Tool == nil || j.spec.TerraformModule == nil {
		return
	}
	if lineage, serial, known := j.proxy.Present(); known && lineage != "" {
		before := j.states().WrittenWith(j.spec.Resource.ID, lineage, serial)
		s.Text = states.ToolChange(before, *result.Tool) + s.Text
	}
}

// told records what the vendor learned of a state's attributes.
func (j *job) told(serial int64, bytes int, digest string) {
	j.storedEvent(context.Background(), "attributes of a Terraform state were told to the vendor",
		fmt.Sprintf("%s, serial %d, without sensitive values: %d bytes, %s", j.spec.Resource.Name, serial, bytes, digest))
}

// fetched are the directories of the job's executable and configuration of Terraform
// that are the agent's own: no image has them, and engines would not see them.
func (j *job) fetched() (dirs []string) {
	for _, path := range []string{j.terraform(), j.deps.Engine.TerraformConfig} {
		if j.ownTool(path) {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs
}

func (j *job) ownTool(path string) bool { return strings.HasPrefix(path, j.deps.Dir.Tools()+"/") }
