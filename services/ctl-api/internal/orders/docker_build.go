package orders

import "github.com/berth-dev/berth/pkg/jobspec"

// dockerBuild is an image that a build has made.
func dockerBuild(c component) (work jobspec.Work, deployable bool) {
	work.DockerBuild = &jobspec.DockerBuild{Commit: c.commit}
	return work, c.DockerBuild != nil
}
