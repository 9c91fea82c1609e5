package orders

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
)

// cluster names the cluster of a context of the app; nil for the sandbox's own.
func cluster(app *appconfig.App, context string) *jobspec.Cluster {
	if context == "" || context == appconfig.SandboxContext {
		return nil
	}
	named := &jobspec.Cluster{Context: context} // without a component a runner refuses it
	if app != nil {
		named.Component = app.ClusterMaker(context)
	}
	return named
}

// Stays fails when a component that is live in one cluster is to be deployed to
// another: nothing would remove what it has in the first.
//
// Errors: ErrConflict.
func Stays(name string, live, next *jobspec.Cluster) error {
	if contextOf(live) == contextOf(next) {
		return nil
	}
	return fault.Newf(fault.ErrConflict, "component %q is live in the cluster of kubernetes_context %q, and the release puts it into that of %q: "+
		"give the component another name, so that the one of now is removed, or keep its context", name, contextOf(live), contextOf(next))
}

func contextOf(c *jobspec.Cluster) string {
	if c == nil {
		return appconfig.SandboxContext
	}
	return c.Context
}
