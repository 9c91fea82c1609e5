package appconfig

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/tfvars"
)

// Limits on the messages about one module and about one file of values.
const (
	maxMissingTold    = 10
	maxUndeclaredTold = 20
)

// terraformVars compares what the sandbox and the components give to Terraform
// modules with what those declare, where the modules can be read. Values for
// variables that are not there are warnings, since Terraform ignores most of
// them. Variables without a value are errors, since no plan can be made, unless
// one may come from where nothing here can look.
func (l *loader) terraformVars(mapped func(Source) (fs.FS, string, bool)) {
	l.app.outputs = map[[2]string][]string{}
	m := modules{folder: folder.New(l.folder.FS), mapped: mapped, read: map[moduleKey]*moduleVariables{}}
	if s := l.app.Sandbox; s != nil && s.Type == SandboxTypeTerraform {
		if src, ok := s.Source(); ok {
			use := moduleUse{at: s.At, source: src, openTofu: s.Berth.isOpenTofu(), vars: s.Vars, env: s.EnvVars, files: s.VarFiles}
			if st := l.app.Stack; st == nil || st.Type != StackLocal && st.Type != StackKubernetes {
				use.given, use.doubt = givenByCloud, "the sandbox of a cloud gets some from its stack"
			}
			l.moduleVars(&m, use)
		}
	}
	for i := range l.app.Components {
		c := &l.app.Components[i]
		src, ok := c.Source()
		if t := c.TerraformModule; ok && t != nil {
			l.moduleVars(&m, moduleUse{at: c.At, source: src, openTofu: c.Berth.isOpenTofu(), vars: t.Vars, env: t.EnvVars, files: t.VarFiles, doubt: l.givenByInstalls(c.Name)})
		}
	}
	l.Diags = append(l.Diags, m.broken...)
}

// givenByCloud tells the variables that a sandbox in a cloud gets from its
// stack, by the public format.
func givenByCloud(name string) bool {
	return strings.HasSuffix(name, "_role_arn") ||
		slices.Contains([]string{"vpc_id", "nuon_id", "region", "public_root_domain", "internal_root_domain", "tags", "kyverno_policy_dir"}, name)
}

// givenByInstalls says why variables of a component may come from its installs,
// "" when none of them can.
func (l *loader) givenByInstalls(component string) string {
	if l.app.InstallsRepo != nil {
		return "an install of another repository may give it by tf_vars"
	}
	for _, in := range l.app.Installs {
		if in.Components[component].TFVars != "" {
			return "an install gives some by tf_vars"
		}
	}
	return ""
}

// moduleUse is a Terraform module and what one block gives to it.
type moduleUse struct {
	at        place.Place
	source    Source
	openTofu  bool // it is for OpenTofu, which reads more files
	vars, env map[string]string
	files     []VarFile
	given     func(name string) bool // what comes by itself, nil for nothing
	doubt     string                 // why there may be more, "" when there cannot
}

// varPrefix marks variables of the environment that Terraform takes for its own.
const varPrefix = "TF_VAR_"

func (l *loader) moduleVars(m *modules, u moduleUse) {
	for _, f := range l.Wanted {
		if f.At.File == u.at.File {
			return // what the block gives is not known yet
		}
	}
	declared := m.variables(u.source, u.openTofu)
	if declared == nil {
		return
	}
	l.app.outputs[[2]string{u.source.Block, u.source.Name}] = declared.outputs
	for _, name := range slices.Sorted(maps.Keys(u.vars)) {
		if !declared.has(name) {
			l.undeclared(l.At(place.Warning, place.CodeUndeclared, u.at.Below("vars").Below(name), "%s", declared.lacks(name)), name, declared)
		}
	}
	given := maps.Clone(declared.given)
	for i, f := range u.files {
		doubt := l.varFile(u.at.Below("var_file").Item(i).Below("contents"), f.Contents, declared, given)
		u.doubt = cmp.Or(u.doubt, doubt)
	}
	var missing []string
	for _, name := range declared.required {
		_, inVars := u.vars[name]
		_, inEnv := u.env[varPrefix+name]
		if !inVars && !inEnv && !given[name] && (u.given == nil || !u.given(name)) {
			missing = append(missing, name)
		}
	}
	l.unset(u, declared, missing)
}

func (l *loader) unset(u moduleUse, declared *moduleVariables, missing []string) {
	severity, remedy := place.Error, "set it in vars, for example from an input, or give it a default there"
	if u.doubt != "" {
		severity, remedy = place.Warning, u.doubt+"; if nothing does, set it in vars"
	}
	for i, name := range missing {
		at := u.at.Below("vars")
		if i == maxMissingTold {
			l.Add(severity, place.CodeUnset, at, "the module in %s requires %d more variables that nothing gives", declared.where, len(missing)-i)
			return
		}
		l.Diags = append(l.Diags, l.At(severity, place.CodeUnset, at, "the module in %s requires the variable %q, and nothing gives it a value", declared.where, name).WithRemedy("%s", remedy))
	}
}

func (l *loader) undeclared(d place.Diagnostic, name string, declared *moduleVariables) {
	l.Diags = append(l.Diags, l.Suggest(d.WithRemedy("declare it there, or remove it here"), name, declared.names))
}

// varFile adds what a file of values gives, and says why there may be more.
func (l *loader) varFile(at place.Place, text place.Text, declared *moduleVariables, given map[string]bool) (doubt string) {
	if text.Contents == "" && text.File == "" { // not fetched, or there is something wrong with it
		return "a var file that is not here may give it"
	}
	plain, certain := template.WithoutActions(text.Contents)
	assigned, whole := tfvars.Assigned(plain)
	t := template.Value{At: at, Text: text.Contents, File: text.From()}
	told := 0
	for _, a := range assigned {
		given[a.Name] = true
		if certain && whole && !declared.has(a.Name) && told < maxUndeclaredTold {
			told++
			d := place.Diagnostic{Severity: place.Warning, Code: place.CodeUndeclared, Message: declared.lacks(a.Name)}
			l.undeclared(t.AtLine(l.Origin, a.Line, d), a.Name, declared)
		}
	}
	switch {
	case !certain:
		return "a var file gives some by a template"
	case !whole:
		return "a var file that cannot be read to its end may give it"
	}
	return ""
}

// modules reads which variables Terraform modules declare, within the limits of
// an app folder, counted apart from reading the config.
type modules struct {
	folder *folder.Reader
	mapped func(Source) (fs.FS, string, bool) // where sources of git stand here
	read   map[moduleKey]*moduleVariables
	broken []place.Diagnostic // files of the app folder that nothing can read
}

// moduleKey is a module, and whether OpenTofu reads it.
type moduleKey struct {
	source   Source
	openTofu bool
}

// isOpenTofu tells whether the block's module is for OpenTofu.
func (e *BlockExtension) isOpenTofu() bool { return e != nil && e.Tool == ToolOpenTofu }

// moduleVariables are the variables of one module.
type moduleVariables struct {
	where    string          // the module, for people
	names    []string        // sorted
	required []string        // those without a default, sorted
	given    map[string]bool // by files of the module itself
	outputs  []string        // what it gives to others, sorted
}

func (d *moduleVariables) has(name string) bool {
	_, found := slices.BinarySearch(d.names, name)
	return found
}

func (d *moduleVariables) lacks(name string) string {
	return "the module in " + d.where + " has no variable " + strconv.Quote(name) + ", so the value does nothing"
}

// variables lists what a module declares, nil when its files cannot be read,
// there are none, or they do not say it clearly.
func (m *modules) variables(src Source, openTofu bool) *moduleVariables {
	src.Block, src.Name = "", "" // blocks may share a module
	key := moduleKey{src, openTofu}
	if known, ok := m.read[key]; ok {
		return known
	}
	m.read[key] = nil
	in, dir, where := m.folder, src.Directory, src.Directory
	if src.Kind == SourceGit && m.mapped != nil {
		root, local, ok := m.mapped(src)
		if !ok {
			return nil
		}
		in, dir, where = folder.New(root), local, src.Repo
		if src.Directory != "." {
			where += "//" + src.Directory
		}
	} else if src.Kind != SourceLocal {
		return nil
	}
	module, broken, ok := readModule(in, dir, openTofu)
	if src.Kind == SourceLocal {
		m.broken = append(m.broken, broken...)
	}
	if !ok {
		return nil
	}
	found := &moduleVariables{where: where, given: module.Given}
	if found.given == nil {
		found.given = map[string]bool{}
	}
	for _, v := range module.Variables {
		found.names = append(found.names, v.Name)
		if !v.Optional {
			found.required = append(found.required, v.Name)
		}
	}
	found.outputs = slices.Sorted(slices.Values(module.Outputs))
	slices.Sort(found.names)
	slices.Sort(found.required)
	m.read[key] = found
	return found
}

// readModule reads the files of a Terraform module, false when it is not known
// what they declare. Files that nothing can read are reported.
func readModule(f *folder.Reader, dir string, openTofu bool) (module tfvars.Module, broken []place.Diagnostic, known bool) {
	if !f.IsDir(dir) {
		return module, nil, false
	}
	entries, err := fs.ReadDir(f.FS, dir)
	if err != nil {
		return module, nil, false
	}
	tool := "Terraform"
	if openTofu {
		tool = "OpenTofu"
	}
	for _, file := range tfvars.Read(entries, openTofu) {
		name := path.Join(dir, file)
		data, err := f.Read(name)
		if err != nil {
			return module, broken, false
		}
		module.Add(file, data)
		if problem := brokenFile(name, string(data)); problem != nil {
			broken = append(broken, place.Diagnostic{
				Severity: place.Error, Code: place.CodeContents, File: name, Line: problem.Line, Column: 1,
				Message: tool + " cannot read this: line " + strconv.Itoa(problem.Line) + " " + problem.Message,
			})
		}
	}
	return module, broken, module.Files > 0 && !module.Unsure
}

func brokenFile(name, text string) *tfvars.Problem {
	switch {
	case strings.HasSuffix(name, ".json"):
		return tfvars.BrokenJSON(text)
	case strings.HasSuffix(name, ".tf"), strings.HasSuffix(name, ".tofu"):
		return tfvars.Broken(text)
	}
	return tfvars.BrokenValues(text)
}
