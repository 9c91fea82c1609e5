package rehearsal

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// outputName is what Terraform takes for the name of an output.
var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Where outputs stand in the state tree.
var (
	stackAt   = []string{"install_stack", "outputs"}
	sandboxAt = []string{"sandbox", "outputs"}
	accountAt = []string{"cloud_account"}
	domainAt  = []string{"domain"}
)

func componentAt(name string) []string { return []string{"components", name, "outputs"} }

// builder grows the part of a state tree that a cloud would give.
type builder struct {
	platform Platform
	region   string
	tree     map[string]any
	source   map[string]Source // by path, of every single value and list
}

// put adds outputs that are known, below those that are there.
func (b *builder) put(o Outputs, source Source) {
	b.putAt(stackAt, o.Stack, source)
	b.putAt(sandboxAt, o.Sandbox, source)
	b.putAt(accountAt, o.CloudAccount, source)
	b.putAt(domainAt, o.Domain, source)
	for name, outputs := range o.Components {
		b.putAt(componentAt(name), outputs, source)
	}
}

func (b *builder) putAt(at []string, value any, source Source) {
	if m, ok := value.(map[string]any); ok && (len(m) > 0 || len(at) <= len(stackAt)) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			b.putAt(append(slices.Clone(at), key), m[key], source)
		}
		return
	}
	above := b.mapAt(at[:len(at)-1])
	if above == nil || value == nil {
		return // a value that wins stands there
	}
	if key := at[len(at)-1]; above[key] == nil {
		above[key] = value
		b.source[strings.Join(at, ".")] = source
	}
}

// mapAt is the map at a path, made where nothing stands; nil where a value does.
func (b *builder) mapAt(path []string) map[string]any {
	at := b.tree
	for _, key := range path {
		if at[key] == nil {
			at[key] = map[string]any{}
		}
		below, ok := at[key].(map[string]any)
		if !ok {
			return nil
		}
		at = below
	}
	return at
}

// makeUp adds a value at a path, unless something stands there. An element that is
// only known when rendering makes a list; what is read below it are maps.
func (b *builder) makeUp(path []string) {
	if i := slices.Index(path, interpolate.Any); i >= 0 {
		if i > 0 {
			b.makeUpList(path[:i], path[i+1:])
		}
		return
	}
	b.putAt(path, b.value(path), MadeUp)
}

func (b *builder) makeUpList(at, below []string) {
	if len(below) == 0 {
		b.putAt(at, b.list(at), MadeUp)
		return
	}
	if slices.Contains(below, interpolate.Any) {
		return // too deep to guess
	}
	items, there := b.at(at).([]any)
	if there && b.source[strings.Join(at, ".")] != MadeUp {
		return
	}
	item := map[string]any{}
	if len(items) > 0 {
		if m, ok := items[0].(map[string]any); ok {
			item = m
		}
	}
	one := builder{platform: b.platform, region: b.region, tree: item, source: map[string]Source{}}
	one.putAt(below, b.value(append(slices.Clone(at), below...)), MadeUp)
	if above := b.mapAt(at[:len(at)-1]); above != nil && (above[at[len(at)-1]] == nil || there) {
		above[at[len(at)-1]] = []any{item}
		b.source[strings.Join(at, ".")] = MadeUp
	}
}

// at is what stands at a path; nil for nothing.
func (b *builder) at(path []string) any {
	var at any = b.tree
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[key]
	}
	return at
}

// reads lists what templates read of a cloud, longer paths first: a value with
// parts is a map, even if another template reads all of it.
func reads(app *appconfig.App) [][]string {
	var paths [][]string
	for _, t := range templates(app) {
		refs, _ := t.References() // check.Validate reports what does not parse
		for _, ref := range refs {
			if path, ok := ofCloud(app, ref); ok {
				paths = append(paths, path)
			}
		}
	}
	slices.SortFunc(paths, func(a, b []string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return slices.Compare(a, b)
	})
	return slices.CompactFunc(paths, slices.Equal)
}

// templates are all that an install renders, pages for people included.
func templates(app *appconfig.App) []template.Value {
	var all []template.Value
	for _, block := range check.Blocks(app) {
		all = append(all, block.Templates()...)
	}
	return all
}

// ofCloud tells whether a template reads something that a cloud gives, and where
// that stands in the tree.
func ofCloud(app *appconfig.App, ref interpolate.Reference) ([]string, bool) {
	path := ref.Path
	if ref.Root != interpolate.RootTree || len(path) < 2 {
		return nil, false
	}
	if _, wrong := ref.Misfit(); wrong {
		return nil, false
	}
	switch ref.Kind {
	case interpolate.KindStack, interpolate.KindSandbox:
		return path, len(path) > 2 && path[1] == "outputs" && path[2] != interpolate.Any
	case interpolate.KindDomain:
		return path, true
	case interpolate.KindCloudAccount:
		return path, len(path) > 2
	case interpolate.KindComponent:
		c := app.ComponentNamed(path[1])
		if c == nil || len(path) < 4 || path[2] != "outputs" || path[3] == interpolate.Any {
			return nil, false
		}
		if c.Type != appconfig.TypeTerraformModule && c.Type != appconfig.TypePulumi {
			return nil, false
		}
		return slices.Concat(componentAt(c.Name), path[3:]), true // not its var_name
	}
	return nil, false
}

func (b *builder) result() Result {
	r := Result{Outputs: Outputs{Components: map[string]map[string]any{}}}
	r.Stack, _ = b.at(stackAt).(map[string]any)
	r.Sandbox, _ = b.at(sandboxAt).(map[string]any)
	r.CloudAccount, _ = b.at(accountAt).(map[string]any)
	r.Domain, _ = b.at(domainAt).(map[string]any)
	components, _ := b.tree["components"].(map[string]any)
	for name := range components {
		r.Components[name], _ = b.at(componentAt(name)).(map[string]any)
	}
	for _, path := range slices.Sorted(maps.Keys(b.source)) {
		r.Origins = append(r.Origins, Origin{Path: path, Source: b.source[path], Value: b.at(strings.Split(path, "."))})
	}
	return r
}
