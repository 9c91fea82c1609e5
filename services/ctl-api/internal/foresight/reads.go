package foresight

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// SourceKind says what makes something that templates read.
type SourceKind string

// The kinds of sources.
const (
	SourceSandbox   SourceKind = "sandbox"
	SourceComponent SourceKind = "component"
	SourceAction    SourceKind = "action"
	SourceCopies    SourceKind = "copies" // of secrets in the cluster
)

// Source makes something that templates read. Name is empty for the sandbox and the copies.
type Source struct {
	Kind SourceKind
	Name string
}

// String is how people name it.
func (s Source) String() string {
	switch s.Kind {
	case SourceSandbox:
		return "sandbox"
	case SourceAction:
		return "action " + s.Name
	case SourceCopies:
		return "copies of secrets"
	}
	return s.Name
}

// Read is one thing that a template reads of a source: an output, or any of them
// when Output is empty.
type Read struct {
	Source Source
	Output string
}

// String is short for people: "greeting.text".
func (r Read) String() string {
	if r.Output == "" {
		return r.Source.String()
	}
	return r.Source.String() + "." + r.Output
}

// Block is one that a workflow plans, as the app has it.
type Block struct {
	App *appconfig.App
	// Source is the block: what it makes is read by others.
	Source Source
	// Override is what the install says itself of a component.
	Override appconfig.InstallComponent
}

// Reads lists what the templates of a block read of other sources, each once, in
// the order in which they stand there. A template that goes through all components
// reads each of them.
func Reads(b Block) []Read {
	var reads []Read
	for _, ref := range b.references() {
		for _, r := range readsOf(b.App, ref) {
			if r.Source != b.Source && !slices.Contains(reads, r) {
				reads = append(reads, r)
			}
		}
	}
	// Without its cluster nothing of it can be planned.
	if made := (Source{SourceComponent, b.App.ClusterMaker(b.context())}); made.Name != "" && made != b.Source {
		reads = append(reads, Read{Source: made})
	}
	return reads
}

// InputRead is an input that a block reads, and where it is read first: the file of the
// app folder with the key, the file that the key loads, or the install's own values.
type InputRead struct{ Name, At string }

// String is short for people: "size (components/api.toml: vars.size)".
func (r InputRead) String() string { return r.Name + " (" + r.At + ")" }

// Inputs lists the inputs that the templates of a block read, by name, each once. One
// that goes through all inputs, or through the whole tree, reads every one.
func Inputs(b Block) []InputRead {
	var reads []InputRead
	for _, v := range b.templates() {
		for _, ref := range referencesOf(v) {
			switch {
			case ref.Kind == interpolate.KindTree, ref.Kind == interpolate.KindInput && ref.Dynamic:
				for _, in := range b.App.Inputs {
					reads = append(reads, InputRead{in.Name, placeOf(v)})
				}
			case ref.Kind == interpolate.KindInput:
				reads = append(reads, InputRead{ref.Name, placeOf(v)})
			}
		}
	}
	slices.SortStableFunc(reads, func(a, b InputRead) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(reads, func(a, b InputRead) bool { return a.Name == b.Name })
}

// placeOf is where a template stands, for people.
func placeOf(v template.Value) string {
	switch {
	case v.File != "":
		return v.File
	case v.At.File == "":
		return "the install's own values"
	}
	return v.At.File + ": " + v.At.Key
}

// context is the kubernetes_context of the block, "" when it has none.
func (b Block) context() string {
	if c := b.component(); c != nil {
		return c.KubernetesContext
	}
	if b.Source.Kind == SourceAction {
		if a := b.App.Action(b.Source.Name); a != nil {
			return a.KubernetesContext
		}
	}
	return ""
}

func (b Block) component() *appconfig.Component {
	if b.Source.Kind != SourceComponent {
		return nil
	}
	return b.App.Component(b.Source.Name)
}

// references lists what the block's templates read.
func (b Block) references() []interpolate.Reference {
	var all []interpolate.Reference
	for _, v := range b.templates() {
		all = append(all, referencesOf(v)...)
	}
	return all
}

// referencesOf lists what a template reads. One that cannot be read reads nothing: its
// plan says what is wrong with it.
func referencesOf(v template.Value) []interpolate.Reference {
	refs, err := v.References()
	if err != nil {
		return nil
	}
	return refs
}

// templates are those of the block.
func (b Block) templates() []template.Value {
	var values []template.Value
	switch c := b.component(); {
	case b.Source.Kind == SourceSandbox && b.App.Sandbox != nil:
		values = template.In(b.App.Sandbox.At, b.App.Sandbox)
	case b.Source.Kind == SourceCopies:
		for _, s := range b.App.Secrets {
			values = append(values, template.In(s.At, s)...)
		}
	case b.Source.Kind == SourceAction && b.App.Action(b.Source.Name) != nil:
		a := b.App.Action(b.Source.Name)
		values = template.In(a.At, a)
	case c != nil:
		values = template.In(c.At, c)
		values = append(values, template.Value{Text: b.Override.HelmValues}, template.Value{Text: b.Override.TFVars})
	}
	return values
}

// readsOf turns a reference into what it reads of which source.
func readsOf(app *appconfig.App, ref interpolate.Reference) []Read {
	if ref.Root != interpolate.RootTree || len(ref.Path) == 0 {
		return nil
	}
	path := ref.Path
	switch path[0] {
	case "sandbox":
		return []Read{{Source{Kind: SourceSandbox}, outputOf(path[1:])}}
	case "components":
		if len(path) < 2 || path[1] == interpolate.Any {
			var all []Read
			for _, c := range app.Components {
				all = append(all, Read{Source: Source{SourceComponent, c.Name}})
			}
			return all
		}
		if c := app.ComponentNamed(path[1]); c != nil {
			return []Read{{Source{SourceComponent, c.Name}, outputOf(path[2:])}}
		}
	case "actions":
		if len(path) > 2 && path[1] == "workflows" && app.Action(path[2]) != nil {
			return []Read{{Source{SourceAction, path[2]}, outputOf(path[3:])}}
		}
	}
	return nil
}

// outputOf is the output that a path below a source leads to, "" for any.
func outputOf(path []string) string {
	switch {
	case len(path) > 0 && path[0] == "image": // short for an output
		return path[0]
	case len(path) > 1 && path[0] == "outputs" && path[1] != interpolate.Any:
		return path[1]
	}
	return ""
}
