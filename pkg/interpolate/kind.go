package interpolate

import "slices"

// Kind says which part of the tree a reference reads.
type Kind string

const (
	KindInstall      Kind = "install"       // the install's id or name; .nuon.install where only its being there counts
	KindOrg          Kind = "org"           // the org
	KindApp          Kind = "app"           // the app; Name is a variable of it
	KindInput        Kind = "input"         // an input; Name is the input
	KindStack        Kind = "stack"         // the install stack; Name is an output
	KindSandbox      Kind = "sandbox"       // the sandbox; Name is an output
	KindComponent    Kind = "component"     // a component; Name is the component, or its var_name
	KindImage        Kind = "image"         // where a component's image is; Name is the component
	KindAction       Kind = "action"        // the last run of an action; Name is the action
	KindActionInput  Kind = "action_input"  // what the caller of this action gave; Name is the input
	KindSecret       Kind = "secret"        // what is known of a secret; Name is the secret
	KindRunner       Kind = "runner"        // the runner
	KindDomain       Kind = "domain"        // the domains; Name is public_domain or internal_domain
	KindCloudAccount Kind = "cloud_account" // region and the like; Name is the cloud
	KindTree         Kind = "tree"          // all of it, what the caller of an action gave included
	KindUnknown      Kind = "unknown"       // no part of the tree has this name
)

// kinds maps what stands directly below .nuon, and says behind how many more
// names the Name follows.
var kinds = map[string]struct {
	kind Kind
	// containers are the names between the part and the Name; without them a
	// reference is to the part itself (its status) and has no Name.
	containers []string
	// named parts consist of nothing but named things, so a reference without
	// a Name may be to any of them.
	named bool
}{
	"id":            {kind: KindInstall},
	"name":          {kind: KindInstall},
	"install":       {kind: KindInstall},
	"org":           {kind: KindOrg},
	"app":           {kind: KindApp, containers: []string{"variables"}},
	"inputs":        {kind: KindInput, containers: []string{"inputs"}},
	"install_stack": {kind: KindStack, containers: []string{"outputs"}},
	"sandbox":       {kind: KindSandbox, containers: []string{"outputs"}},
	"components":    {kind: KindComponent, named: true},
	"actions":       {kind: KindAction, containers: []string{"workflows"}},
	"secrets":       {kind: KindSecret, named: true},
	"runner":        {kind: KindRunner},
	"domain":        {kind: KindDomain, named: true},
	"cloud_account": {kind: KindCloudAccount, named: true},
}

// classify fills in Kind, Name and Dynamic from Root and Path.
func (r Reference) classify() Reference {
	path := r.Path
	switch {
	case r.Root == RootAction:
		r.Kind, r.Dynamic = KindActionInput, len(path) < 2
		if len(path) >= 2 {
			r.Name = path[1]
		}
	case r.Root != RootTree:
		r.Kind = KindUnknown
	case len(path) == 0 || path[0] == Any:
		r.Kind, r.Dynamic = KindTree, true
	default:
		r = r.classifyPart(path)
	}
	if r.Name == Any {
		r.Name, r.Dynamic = "", true
	}
	return r
}

func (r Reference) classifyPart(path []string) Reference {
	part, known := kinds[path[0]]
	if !known {
		r.Kind = KindUnknown
		return r
	}
	r.Kind = part.kind
	rest := path[1:]
	switch {
	case len(part.containers) == 0 && !part.named: // runner, org, id: nothing to name
		return r
	case len(part.containers) > 0 && len(rest) > 0 && rest[0] != Any && rest[0] != part.containers[0]:
		return r // the status of the part and the like
	case len(part.containers) > 0 && len(rest) > 0:
		rest = rest[1:]
	}
	if len(rest) == 0 {
		r.Dynamic = true
		return r
	}
	r.Name = rest[0]
	if r.Kind == KindComponent && isImage(rest[1:]) {
		r.Kind = KindImage
	}
	return r
}

// isImage tells whether a path below a component leads to its image.
func isImage(path []string) bool {
	return len(path) > 0 && path[0] == "image" || len(path) > 1 && slices.Equal(path[:2], []string{"outputs", "image"})
}
