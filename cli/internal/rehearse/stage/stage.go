package stage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// Part names the sandbox, a component or an action: "sandbox", "component/NAME",
// "action/NAME".
type Part string

// Kind is what a part is: "component".
func (p Part) Kind() string {
	kind, _, _ := strings.Cut(string(p), "/")
	return kind
}

// Name is the name of a part; "" for one of which an app has only one.
func (p Part) Name() string {
	_, name, _ := strings.Cut(string(p), "/")
	return name
}

// Sandbox is the sandbox.
const Sandbox Part = appconfig.BlockSandbox

// Component is the component of that name.
func Component(name string) Part { return Part(appconfig.BlockComponent + "/" + name) }

// Action is the action of that name.
func Action(name string) Part { return Part(appconfig.BlockAction + "/" + name) }

// StandIns say why a stand-in takes the place of each part.
type StandIns map[Part]string

// Changes are what a rehearsal changes in the copy of a folder. The zero value is
// nothing.
type Changes struct {
	StandIns StandIns          // of the sandbox, components and actions
	Out      StandIns          // other definitions that are left out, and why
	Files    map[string]string // files that are left out, and why; one that every app needs gets the least that will do
}

// None tells whether nothing is changed.
func (c Changes) None() bool { return len(c.StandIns)+len(c.Out)+len(c.Files) == 0 }

// Add leaves a definition out for a reason, unless it is left out already; false when
// that cannot be done. One that others deploy, build or run has a stand-in.
func (c *Changes) Add(app *appconfig.App, part Part, why string) bool {
	if c.Why(part) != "" {
		return false
	}
	kind, _, _ := strings.Cut(string(part), "/")
	switch kind {
	case appconfig.BlockSandbox, appconfig.BlockComponent, appconfig.BlockAction:
		if c.StandIns == nil {
			c.StandIns = StandIns{}
		}
		c.StandIns[part] = why
	case appconfig.BlockStack:
		return c.AddFile(app, appconfig.BlockStack+".toml", why)
	case appconfig.BlockMetadata:
		return c.AddFile(app, appconfig.BlockMetadata+".toml", why)
	case appconfig.BlockRunner, "":
		return false // it says what the app is for
	default:
		if c.Out == nil {
			c.Out = StandIns{}
		}
		c.Out[part] = why
	}
	return true
}

// AddFile leaves a file out for a reason; false when that cannot be done.
func (c *Changes) AddFile(app *appconfig.App, name, why string) bool {
	if name == "" || name == "runner.toml" || c.Files[name] != "" || filepath.Ext(name) != ".toml" || appconfig.IsWholeFile(name) {
		return false
	}
	if wholeFile(app) != "" && (name != "stack.toml" || app.Stack != nil) {
		return false
	}
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	c.Files[name] = why
	return true
}

// Why is the reason for which a definition is left out; "" for one that is there.
func (c Changes) Why(part Part) string {
	if why := c.StandIns[part]; why != "" {
		return why
	}
	if why := c.Out[part]; why != "" {
		return why
	}
	return c.Files[string(part)+".toml"]
}

// wholeFile is the one file of an app in the older form, "" for all others.
func wholeFile(app *appconfig.App) string {
	for _, f := range app.Origin.Files {
		if appconfig.IsWholeFile(f.Path) {
			return f.Path
		}
	}
	return ""
}

// moduleDir is the directory of the stand-ins' module in a staged folder.
const moduleDir = "berth-rehearsal"

// module is what is built for every stand-in. The engine writes the one that it
// applies itself.
const module = "# A stand-in of a rehearsal. The engine gives it the outputs that the app reads.\n"

// aside are what no rehearsal needs, and what may name a part in a way that does not
// fit its stand-in.
var aside = []string{"installs", "installs.toml", "branches", "branch.toml", "policies", "policies.toml"}

// Write copies the app folder at from to the empty folder to, with what is changed.
// Without changes it is the folder as it is.
func Write(from, to string, app *appconfig.App, changes Changes) error {
	if err := copyFolder(from, to, !changes.None()); err != nil {
		return err
	}
	if changes.None() {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(to, moduleDir), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, moduleDir, "main.tf"), []byte(module), 0o644); err != nil {
		return err
	}
	s := staging{app: app, to: to}
	s.graph, _ = graph.New(app)
	for _, part := range slices.Sorted(maps.Keys(changes.StandIns)) {
		at, block, ok := s.standIn(part, changes.StandIns[part])
		if !ok {
			return fmt.Errorf("the app has no %s", part)
		}
		if changes.Files[at.File] != "" {
			continue // it goes with its file
		}
		if err := s.replace(at, block); err != nil {
			return fmt.Errorf("write the stand-in of %s: %w", part, err)
		}
	}
	return s.leaveOut(changes)
}

// leaveOut takes definitions and files out of the folder. The last tables of a list
// go first, so that the others keep their numbers.
func (s *staging) leaveOut(changes Changes) error {
	var places []place.Place
	for _, b := range Blocks(s.app) {
		if changes.Out[b.Part] != "" && changes.Files[b.At.File] == "" {
			places = append(places, b.At)
		}
	}
	slices.SortFunc(places, func(a, b place.Place) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(numberOf(b.Key), numberOf(a.Key)))
	})
	for _, at := range places {
		if err := s.remove(at); err != nil {
			return fmt.Errorf("leave out %s of %s: %w", at.Key, at.File, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes.Files)) {
		if err := s.removeFile(name, changes.Files[name]); err != nil {
			return fmt.Errorf("leave out %s: %w", name, err)
		}
	}
	return nil
}

func numberOf(key string) int {
	m := keyOf.FindStringSubmatch(key)
	if m == nil || m[2] == "" {
		return -1
	}
	n, _ := strconv.Atoi(m[2]) // digits
	return n
}

// removeFile removes a file, or puts the least that will do in its place.
func (s *staging) removeFile(name, why string) error {
	path := filepath.Join(s.to, filepath.FromSlash(name))
	least := map[string]table{
		"metadata.toml": {"version": "v2"}, "stack.toml": s.stack(), "sandbox.toml": moduleOf(why),
	}[name]
	if whole := wholeFile(s.app); whole != "" && name == "stack.toml" {
		return s.replace(place.Place{File: whole, Key: appconfig.BlockStack}, least)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if least == nil {
		return nil
	}
	raw, err := toml.Marshal(least)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// stack is the least that a stack of the app's platform says.
func (s *staging) stack() table {
	kind := map[rehearsal.Platform]string{rehearsal.AWS: "aws-cloudformation", rehearsal.GCP: "gcp-terraform", rehearsal.Azure: "azure-bicep"}[rehearsal.PlatformOf(s.app)]
	return table{"type": cmp.Or(kind, string(appconfig.StackLocal)), "name": "rehearsal", "description": "Made up for a rehearsal."}
}

// copyFolder copies files and links that lead to files of the folder.
func copyFolder(from, to string, partly bool) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git", partly && slices.Contains(aside, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, filepath.FromSlash(name)), 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, filepath.Join(to, filepath.FromSlash(name)))
		case !d.Type().IsRegular():
			return nil
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.FromSlash(name)), raw, info.Mode().Perm()|0o600)
	})
}

// staging is a folder that gets its stand-ins.
type staging struct {
	app   *appconfig.App
	graph *graph.Graph
	to    string
}

type table = map[string]any

// standIn is what stands in for a part, and where the part stands.
func (s *staging) standIn(part Part, why string) (place.Place, table, bool) {
	kind, name, _ := strings.Cut(string(part), "/")
	switch kind {
	case appconfig.BlockSandbox:
		if s.app.Sandbox == nil {
			return place.Place{}, nil, false
		}
		return s.app.Sandbox.At, moduleOf(why), true
	case appconfig.BlockComponent:
		c := s.app.Component(name)
		if c == nil {
			return place.Place{}, nil, false
		}
		t := moduleOf(why)
		t["name"], t["type"], t["dependencies"] = c.Name, string(appconfig.TypeTerraformModule), s.graph.Needs(c.Name)
		if c.VarName != "" {
			t["var_name"] = c.VarName
		}
		if c.Toggleable {
			t["toggleable"] = true
			if c.DefaultEnabled != nil {
				t["default_enabled"] = *c.DefaultEnabled
			}
		}
		return c.At, t, true
	}
	a := s.app.Action(name)
	if a == nil {
		return place.Place{}, nil, false
	}
	return a.At, s.action(a, why), true
}

func moduleOf(why string) table {
	return table{"terraform_version": ">= 1.0.0", "berth": table{"local_source": moduleDir, "stand_in": why}}
}

// action is an action whose steps do nothing but give the outputs that templates
// read; one that nobody reads is left to be run by hand.
func (s *staging) action(a *appconfig.Action, why string) table {
	t := table{"name": a.Name, "description": a.Description, "berth": table{"stand_in": why}}
	if len(a.Dependencies) > 0 {
		t["dependencies"] = a.Dependencies
	}
	var inputs []table
	for _, in := range a.Inputs {
		inputs = append(inputs, table{"name": in.Name, "description": in.Description})
	}
	if len(inputs) > 0 {
		t["inputs"] = inputs
	}
	read := s.outputsOf(a.Name)
	triggers := []table{{"type": string(appconfig.TriggerManual)}}
	if len(read) > 0 {
		triggers = nil
		for _, trigger := range a.Triggers {
			if trigger.Type == appconfig.TriggerCron {
				continue
			}
			one := table{"type": string(trigger.Type), "index": trigger.Index}
			if trigger.ComponentName != "" {
				one["component_name"] = trigger.ComponentName
			}
			triggers = append(triggers, one)
		}
	}
	t["triggers"] = triggers
	var steps []table
	for i, step := range a.Steps {
		values := read[step.Name]
		if i == 0 {
			values = merged(read[""], values)
		}
		steps = append(steps, table{"name": step.Name, "inline_contents": script(values)})
	}
	t["steps"] = steps
	return t
}

func merged(a, b map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// script writes outputs to where a step leaves them.
func script(values map[string]any) string {
	text := "#!/bin/sh\n# A stand-in of a rehearsal.\n"
	if len(values) == 0 {
		return text + "exit 0\n"
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err) // texts only
	}
	quoted := "'" + strings.ReplaceAll(string(raw), "'", `'\''`) + "'"
	return text + "printf '%s\\n' " + quoted + ` > "$NUON_ACTIONS_OUTPUT_FILEPATH"` + "\n"
}

// outputsOf are the outputs of an action that templates read, made up, by step; those
// of no step are below "".
func (s *staging) outputsOf(action string) map[string]map[string]any {
	read := map[string]map[string]any{}
	put := func(step, key string) {
		if read[step] == nil {
			read[step] = map[string]any{}
		}
		read[step][key] = "rehearsal-" + key
	}
	for _, block := range check.Blocks(s.app) {
		for _, value := range block.Templates() {
			refs, _ := value.References() // what does not parse, the sync reports
			for _, ref := range refs {
				if ref.Kind != interpolate.KindAction || ref.Name != action || ref.Root != interpolate.RootTree {
					continue
				}
				path := ref.Path
				at := slices.Index(path, "outputs")
				switch {
				case at < 0 || len(path) < at+2 || path[at+1] == interpolate.Any:
				case path[at+1] == "steps" && len(path) >= at+4 && path[at+3] != interpolate.Any:
					put(path[at+2], path[at+3])
				case path[at+1] != "steps":
					put("", path[at+1])
				}
			}
		}
	}
	return read
}

// replace puts a block where a part stands: the whole file, or a table of it.
func (s *staging) replace(at place.Place, block table) error {
	path := filepath.Join(s.to, filepath.FromSlash(at.File))
	whole := any(block)
	if at.Key != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		doc := table{}
		if err := toml.Unmarshal(raw, &doc); err != nil {
			return err
		}
		if err := put(doc, at.Key, block); err != nil {
			return err
		}
		whole = doc
	}
	raw, err := toml.Marshal(whole)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil { // a link would lead to another file
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// remove takes a table out of its file, or the whole file away.
func (s *staging) remove(at place.Place) error {
	path := filepath.Join(s.to, filepath.FromSlash(at.File))
	if at.Key == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // it was set aside
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	doc := table{}
	if err := toml.Unmarshal(raw, &doc); err != nil {
		return err
	}
	m := keyOf.FindStringSubmatch(at.Key)
	if m == nil {
		return fmt.Errorf("%s is no place of a definition", at.Key)
	}
	if m[2] == "" {
		delete(doc, m[1])
	} else if list, ok := doc[m[1]].([]any); ok && numberOf(at.Key) < len(list) {
		i := numberOf(at.Key)
		doc[m[1]] = slices.Delete(list, i, i+1)
	}
	if raw, err = toml.Marshal(doc); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil { // a link would lead to another file
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// keyOf reads "components[2]", "sandbox".
var keyOf = regexp.MustCompile(`^([A-Za-z0-9_-]+)(?:\[(\d+)\])?$`)

func put(doc table, key string, block table) error {
	m := keyOf.FindStringSubmatch(key)
	if m == nil {
		return fmt.Errorf("%s is no place of a part", key)
	}
	if m[2] == "" {
		doc[m[1]] = block
		return nil
	}
	i, err := strconv.Atoi(m[2])
	if err != nil {
		return err
	}
	for name := range doc {
		list, ok := doc[name].([]any)
		if name == m[1] && ok && i < len(list) {
			list[i] = block
			return nil
		}
	}
	return errors.New("there is no " + key)
}
