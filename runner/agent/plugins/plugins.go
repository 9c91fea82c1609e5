// Package plugins decides what a runner lets a plugin do: which one may run at all,
// and what of an install's state it sees. It is pure.
package plugins

import (
	"slices"
	"strconv"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin/grant"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// Confined says whether the engine of a job has no network: that of a plugin without
// the permission for it.
func Confined(spec jobspec.Spec) bool {
	return runs(spec) && (spec.Plugin == nil || !spec.Plugin.Network)
}

// Hosts are what of the network a confined engine reaches through the agent, none for
// most. A list that is not what it should be is an error, and the job is not to run.
func Hosts(spec jobspec.Spec) (grant.Hosts, error) {
	if !runs(spec) || spec.Plugin == nil || spec.Plugin.Network {
		return nil, nil
	}
	return grant.ParseHosts(spec.Plugin.Hosts)
}

// Paths are what the engine of a job is shown of the machine, none for most. A list that
// is not what it should be is an error, and the job is not to run.
func Paths(spec jobspec.Spec) ([]grant.Path, error) {
	if !runs(spec) || spec.Plugin == nil {
		return nil, nil
	}
	return grant.ParsePaths(spec.Plugin.Paths)
}

// SeesInstall says whether the engine of a job sees the install's durable directory.
func SeesInstall(spec jobspec.Spec) bool {
	return spec.InstallID != "" && (!runs(spec) || spec.Plugin != nil && spec.Plugin.InstallDir)
}

// runs says whether the job starts a plugin. A build only looks at one.
func runs(spec jobspec.Spec) bool {
	return spec.Kind == jobspec.KindPlugin && spec.Operation != jobspec.OperationBuild
}

// Refused says why a job may not start its plugin, nil when it may: the same plugin,
// signer and permissions must have been accepted for the same component.
func Refused(spec jobspec.Spec, accepted func(digest string) bool) *jobspec.Difference {
	if !runs(spec) {
		return nil
	}
	d := &jobspec.Difference{Field: "plugin", Want: "one that was accepted"}
	if spec.Plugin == nil || spec.Resource == nil || spec.Artifact == nil {
		d.Got = "none"
		return d
	}
	digest, err := jobspec.PluginScript(spec.Resource.Name, *spec.Plugin, *spec.Artifact).Digest()
	if err != nil {
		d.Got = err.Error()
		return d
	}
	if accepted(digest) {
		return nil
	}
	d.Got = digest
	return d
}

// Kept are the digests of the accepted plugins: they stay accepted, so that what
// they made can be removed with them.
func Kept(list []scripts.Accepted) []string {
	var digests []string
	for _, a := range list {
		if a.Script.Plugin != "" {
			digests = append(digests, a.Digest)
		}
	}
	return digests
}

// Narrow is a copy of a state tree with the leaves that keep names, and nothing
// else: a plugin learns of an install only what the component's config names.
func Narrow(tree any, keep func(path []string) bool) any {
	kept, _ := narrow(tree, nil, keep)
	if kept == nil {
		return map[string]any{}
	}
	return kept
}

func narrow(node any, path []string, keep func([]string) bool) (kept any, there bool) {
	switch v := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, child := range v {
			if c, ok := narrow(child, append(slices.Clip(path), key), keep); ok {
				out[key] = c
			}
		}
		if len(out) > 0 || keep(path) {
			return out, true
		}
		return nil, false
	case []any:
		if keep(path) {
			return v, true
		}
		for i := range v {
			if keep(append(slices.Clip(path), strconv.Itoa(i))) {
				return v, true // its order counts, so it stays whole
			}
		}
		return nil, false
	}
	return node, keep(path)
}
