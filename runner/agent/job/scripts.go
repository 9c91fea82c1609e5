package job

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// bringScripts unpacks the directories that the steps of an action run in. Nobody
// may write to them: a step finds what was built, whatever ran before it.
func (j *job) bringScripts(ctx context.Context) error {
	if j.spec.Action == nil {
		return nil
	}
	for _, a := range j.spec.Action.Artifacts() {
		if err := j.untouched(ctx, a); err != nil {
			return err
		}
		dir := j.dir.In(filepath.FromSlash(a.Folder()))
		if err := j.bring(ctx, a, dir); err != nil {
			return fmt.Errorf("scripts of a repository: %w", err)
		}
		if err := datadir.CloseTree(dir); err != nil {
			return fmt.Errorf("scripts of a repository: %w", err)
		}
	}
	return nil
}

// keepScripts brings the directories of a release's scripts to the own registry. From
// there they run while the control plane is away; what is accepted stays in it.
func (j *job) keepScripts(ctx context.Context, release jobspec.Release) error {
	for _, script := range release.Scripts {
		for _, a := range script.Action.Artifacts() {
			if _, err := j.fetch(ctx, a); err != nil {
				return fmt.Errorf("scripts of action %s: %w", script.Action.Name, err)
			}
		}
	}
	return nil
}

// artifactProblem says which artifact of the job is not in the own registry as it
// was built, "" when all are.
func (j *job) artifactProblem(ctx context.Context) string {
	var all []jobspec.Artifact
	if j.spec.Artifact != nil {
		all = append(all, *j.spec.Artifact)
	}
	if j.spec.Action != nil {
		all = append(all, j.spec.Action.Artifacts()...)
	}
	for _, a := range all {
		if err := j.deps.Trees.Verify(ctx, digest.Digest(a.Digest)); err != nil {
			return err.Error()
		}
	}
	return ""
}
