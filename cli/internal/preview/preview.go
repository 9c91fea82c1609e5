// Package preview shows what each part of an app folder comes to in an install.
package preview

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/pkg/visible"
)

// Kinds are the kinds of blocks, in the order in which they are shown.
var Kinds = []string{
	appconfig.BlockSandbox, appconfig.BlockComponent, appconfig.BlockStack, appconfig.BlockRunner, appconfig.BlockRole,
	appconfig.BlockOperationRoles, appconfig.BlockPolicy, appconfig.BlockAction, appconfig.BlockRunbook, appconfig.BlockMetadata,
}

// Rendered is what one block would get.
type Rendered struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Type   string          `json:"type"`
	Values []check.Preview `json:"values"`
}

// Wanted says what is rendered; the zero value is everything.
type Wanted struct {
	Component string // "sandbox" is the sandbox
	Action    string
	Only      string // one of Kinds
}

// Blocks lists what is rendered: everything, or what is wanted of it.
func Blocks(app *appconfig.App, w Wanted) ([]check.Block, error) {
	all := check.Blocks(app)
	switch {
	case w.Only != "":
		if !slices.Contains(Kinds, w.Only) {
			return nil, usage.Errorf("there is no kind %q; there are %s", usage.Shortened(w.Only), strings.Join(Kinds, ", "))
		}
		return slices.DeleteFunc(all, func(b check.Block) bool { return b.Kind != w.Only }), nil
	case w.Component != "":
		return oneBlock(all, w.Component, appconfig.BlockSandbox, appconfig.BlockComponent)
	case w.Action != "":
		return oneBlock(all, w.Action, appconfig.BlockAction)
	}
	return all, nil
}

// oneBlock finds a block of some kinds by its name.
func oneBlock(all []check.Block, name string, kinds ...string) ([]check.Block, error) {
	kind := kinds[len(kinds)-1]
	var names []string
	for _, b := range all {
		if !slices.Contains(kinds, b.Kind) {
			continue
		}
		if cmp.Or(b.Name, b.Kind) == name {
			return []check.Block{b}, nil
		}
		names = append(names, cmp.Or(b.Name, b.Kind))
	}
	if len(names) == 0 {
		return nil, usage.Errorf("there is no %s %q; the app has none", kind, usage.Shortened(name))
	}
	return nil, usage.Errorf("there is no %s %q; there are %s", kind, usage.Shortened(name), strings.Join(names, ", "))
}

// Options adjust Render.
type Options struct {
	Now      time.Time
	Inputs   map[string]string // what actions are asked for
	Recorded bool              // the state is that of an install, and not made up
	// Defaults are the keys that check.CompletePlugins filled in.
	Defaults map[place.Place]bool
}

// Render renders blocks with a state. It also returns what cannot be rendered,
// and how many values that is: with a state that is made up none, since the
// state may be at fault.
func Render(app *appconfig.App, blocks []check.Block, state interpolate.State, o Options) (shown []Rendered, problems []place.Diagnostic, failed int) {
	opts := check.PreviewOptions{Now: o.Now, Inputs: o.Inputs, Defaults: o.Defaults}
	if o.Recorded {
		opts.Sealed = seal.Redacted
	}
	shown = []Rendered{}
	for _, b := range blocks {
		values, found := check.Previews(app, b, state, opts)
		for _, d := range found {
			switch {
			case !o.Recorded: // the state may be at fault
				d.Severity, d.Remedy = place.Warning, "render it with --install or --state"
			case d.Severity == place.Error:
				failed++
			}
			problems = append(problems, d)
		}
		for i := range values {
			if !o.Recorded {
				values[i].Value = check.WithoutEscapes(values[i].Value)
			}
		}
		shown = append(shown, Rendered{
			Kind: b.Kind, Name: cmp.Or(b.Name, b.Kind), Type: cmp.Or(b.Type, b.Kind), Values: append([]check.Preview{}, values...),
		})
	}
	return shown, problems, failed
}

// maxState is the largest state that is read, in bytes.
const maxState = 64 << 20

// ReadTree reads the state in a file, or in stdin for "-".
func ReadTree(name string, stdin io.Reader) (interpolate.State, error) {
	if name == "-" {
		return Tree(stdin, name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	defer func() { _ = file.Close() }()
	return Tree(file, name)
}

// Tree reads the state of an install: a tree, alone or as the API gives it.
func Tree(in io.Reader, name string) (interpolate.State, error) {
	decoder := json.NewDecoder(io.LimitReader(in, maxState))
	decoder.UseNumber() // whole numbers stay whole
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read the state in %s: %w", name, err)
	}
	if inner, ok := tree["tree"].(map[string]any); ok {
		tree = inner
	}
	if _, ok := tree["components"]; !ok {
		return nil, errors.New(name + " is not the state of an install: it has no components; get one with berth api /installs/INSTALL/state")
	}
	return interpolate.NewState(tree), nil
}

// Text shows blocks to a person.
func Text(blocks []Rendered, color bool) string {
	var b strings.Builder
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte('\n')
		}
		what := block.Type
		if block.Kind == appconfig.BlockRole {
			what += " role"
		}
		fmt.Fprintf(&b, "%s (%s)\n", visible.Row(block.Name), visible.Row(what))
		if len(block.Values) == 0 {
			b.WriteString("  nothing differs between installs\n")
		}
		for _, v := range block.Values {
			where := fmt.Sprintf("%s:%d", v.File, v.Line)
			if v.Sealed {
				where += "  made of sealed values"
			}
			if v.Default {
				where = "default of the plugin"
			}
			fmt.Fprintf(&b, "  %s  %s\n", visible.Row(v.Key), output.Paint(color, output.Dim, where))
			for line := range strings.Lines(strings.TrimRight(v.Value, "\n")) {
				b.WriteString("    " + visible.Text(strings.TrimRight(line, "\r\n")) + "\n")
			}
		}
	}
	return b.String()
}
