package rehearse

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// Undeclared is an output that the app reads, and that nothing here declares.
type Undeclared struct {
	Path   string   `json:"path"`
	ReadBy []string `json:"read_by"` // "component api"
	Why    string   `json:"why"`
}

// outputs compares what templates read with what there is: unread are paths of outputs
// that are declared, given or always there and that nothing reads. named are the paths
// that a person gave or recorded.
func outputs(app *appconfig.App, named []string) (unread []string, undeclared []Undeclared) {
	platform := rehearsal.PlatformOf(app)
	there := map[string]bool{}
	for _, path := range rehearsal.Always(app, platform) {
		if path[0] == "install_stack" {
			there[strings.Join(path, ".")] = true
		}
	}
	for _, path := range named {
		if parts := strings.Split(path, "."); outputAt(parts) > 0 {
			there[strings.Join(parts[:outputAt(parts)], ".")] = true
		}
	}
	known := map[string]bool{} // what declares its outputs
	declare := func(prefix, block, name string) {
		if declared, ok := app.DeclaredOutputs(block, name); ok {
			known[prefix] = true
			for _, output := range declared {
				there[prefix+output] = true
			}
		}
	}
	declare("sandbox.outputs.", appconfig.BlockSandbox, "")
	for i := range app.Components {
		declare("components."+app.Components[i].Name+".outputs.", appconfig.BlockComponent, app.Components[i].Name)
	}
	readers := readersOf(app)
	for path := range there {
		if _, read := readers[path]; !read {
			unread = append(unread, path)
		}
	}
	slices.Sort(unread)
	for _, path := range slices.Sorted(maps.Keys(readers)) {
		if there[path] || strings.HasSuffix(path, ".outputs.") {
			continue
		}
		u := Undeclared{Path: path, ReadBy: slices.Sorted(maps.Keys(readers[path]))}
		prefix := path[:strings.Index(path, ".outputs.")+len(".outputs.")]
		switch {
		case strings.HasPrefix(path, "install_stack."):
			u.Why = "no stack of its platform always gives it, and nobody gave it"
			if nested, ok := strings.CutPrefix(path, "install_stack.outputs."+nestedStacks+"."); ok {
				name, _, _ := strings.Cut(nested, ".")
				u.Why = "the template of nested stack " + name + " is not looked at"
				if app.Stack == nil || !slices.ContainsFunc(app.Stack.CustomNestedStacks, func(n appconfig.NestedStack) bool { return n.Name == name }) {
					u.Why = "the app has no nested stack " + name
				}
			}
		case known[prefix]:
			u.Why = "its module declares no such output"
		default:
			u.Why = "its module is not in the folder, so nothing here declares it"
		}
		undeclared = append(undeclared, u)
	}
	return unread, undeclared
}

// nestedStacks is where the outputs of nested stacks are.
const nestedStacks = "custom_nested_stacks"

// outputAt is how many parts of a path name an output; 0 for a path of something else.
func outputAt(path []string) int {
	n := 0
	switch {
	case len(path) > 2 && (path[0] == "install_stack" || path[0] == "sandbox") && path[1] == "outputs":
		if n = 3; path[2] == nestedStacks {
			n = 5
		}
	case len(path) > 3 && path[0] == "components" && path[2] == "outputs":
		n = 4
	}
	if n > len(path) || slices.Contains(path[:n], interpolate.Any) {
		return 0
	}
	return n
}

// readersOf says who reads each output of a stack, a sandbox, and a component that
// declares some: those of charts and images are Berth's own.
func readersOf(app *appconfig.App) map[string]map[string]bool {
	readers := map[string]map[string]bool{}
	for _, block := range check.Blocks(app) {
		for _, t := range block.Templates() {
			refs, _ := t.References() // the sync reports what does not parse
			for _, ref := range refs {
				path := slices.Clone(ref.Path)
				n := outputAt(path)
				if ref.Root != interpolate.RootTree || n == 0 {
					continue
				}
				if path[0] == "components" {
					c := app.ComponentNamed(path[1])
					if c == nil || c.Type != appconfig.TypeTerraformModule && c.Type != appconfig.TypePulumi {
						continue
					}
					path[1] = c.Name
				}
				key := strings.Join(path[:n], ".")
				if readers[key] == nil {
					readers[key] = map[string]bool{}
				}
				readers[key][strings.TrimSuffix(block.Kind+" "+block.Name, " ")] = true
			}
		}
	}
	return readers
}
