package appconfig

import (
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// WholeFile is nuon.<app>.toml, an older form: the keys of metadata.toml, and
// every other file as a table or a list of tables. "./x" is relative to the app
// folder everywhere. `{{ .config_vars.<name> }}` anywhere in it stands for a
// value of config_vars.
type WholeFile struct {
	// Values that the file's own strings may use, by name.
	ConfigVars map[string]string `toml:"config_vars"`
	// As inputs.toml.
	Inputs *InputsFile `toml:"inputs"`
	// As sandbox.toml.
	Sandbox *Sandbox `toml:"sandbox"`
	// As runner.toml.
	Runner *Runner `toml:"runner"`
	// As stack.toml.
	Stack *Stack `toml:"stack"`
	// As secrets.toml.
	Secrets *SecretsFile `toml:"secrets"`
	// As permissions.toml.
	Permissions *PermissionsFile `toml:"permissions"`
	// As break_glass.toml.
	BreakGlass *BreakGlassFile `toml:"break_glass"`
	// As policies.toml.
	Policies *PoliciesFile `toml:"policies"`
	// As the files below components/.
	Components []AnyComponent `toml:"components"`
	// As the files below actions/.
	Actions []Action `toml:"actions"`
	// As the files below runbooks/.
	Runbooks []Runbook `toml:"runbooks"`
	// As the files below installs/.
	Installs []InstallConfig `toml:"installs"`
	// As branch.toml.
	Branch *Branch `toml:"branch"`
	// As the files below branches/.
	Branches []Branch `toml:"branches"`
	// As operation_roles.toml.
	OperationRoles *OperationRoles `toml:"operation_roles"`
	// As kubernetes_contexts.toml.
	KubernetesContexts *KubernetesContextsFile `toml:"kubernetes_contexts"`
	// As the list of triggers.toml.
	Triggers []EventTrigger `toml:"triggers"`
	// As installer.toml.
	Installer *Installer `toml:"installer"`
}

// AnyComponent stands for a component of any type in a description.
type AnyComponent struct{ Component }

// IsWholeFile is the name of the older form with the whole config in one file.
func IsWholeFile(name string) bool {
	rest, ok := strings.CutPrefix(name, "nuon.")
	return ok && len(rest) > len(".toml") && strings.HasSuffix(rest, ".toml")
}

// wholeKeyOf is the key of a kind in a whole file, "" when it has none.
func wholeKeyOf(k kind) string {
	switch k.name {
	case "metadata", "input_groups", "installs_repo", "customer_managed":
		return "" // keys of metadata or inputs, or not part of that form
	}
	return k.name
}

func (l *loader) wholeNames() []string {
	entries, err := fs.ReadDir(l.folder.FS, ".")
	if err != nil {
		return nil // noAppFolder has read it before
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && IsWholeFile(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// wholeFiles reads the whole config in a single file; there can be one.
func (l *loader) wholeFiles() []*syntax.Document {
	docs := l.documents(kind{name: "metadata"}, l.wholeNames())
	if len(docs) > 1 {
		l.bothDefine(place.Place{File: docs[0].File}, docs[1].File)
		docs = docs[:1]
	}
	return docs
}

func (l *loader) wholeFile(doc *syntax.Document) {
	at := place.Place{File: doc.File}
	l.Base = ""
	rest := maps.Clone(doc.Values)
	vars := l.configVars(at, rest)
	delete(rest, "config_vars")
	substituted := map[string]any{}
	for key, value := range rest {
		substituted[key] = l.substitute(at.Below(key), value, vars)
	}
	l.metadata(at, substituted)
	l.lostLists(at, substituted, reflect.TypeFor[WholeFile]())
	for _, k := range kinds {
		keys := []string{wholeKeyOf(k)}
		if k.name == "branches" {
			keys = append(keys, "branch")
		}
		for _, key := range keys {
			if value, ok := substituted[key]; ok && key != "" {
				l.part(k, at.Below(key), value)
			}
		}
	}
}

// part reads one kind of a whole file.
func (l *loader) part(k kind, at place.Place, value any) {
	if k.name == "triggers" {
		k.load(l, at.Parent(), map[string]any{"triggers": value}) // the list is the key of triggers.toml
		return
	}
	switch v := value.(type) {
	case map[string]any:
		k.load(l, at, v)
	case []any:
		for i, item := range v {
			if table, ok := item.(map[string]any); ok {
				k.load(l, at.Item(i), table)
			} else {
				l.WrongType(at.Item(i), "a table", item)
			}
		}
	default:
		l.WrongType(at, "a table", value)
	}
}

// configVars reads the values that the file's own strings may use.
func (l *loader) configVars(at place.Place, values map[string]any) map[string]string {
	var file struct {
		Vars map[string]string `toml:"config_vars"`
	}
	if vars, ok := values["config_vars"]; ok {
		l.Table(at, map[string]any{"config_vars": vars}, &file)
	}
	return file.Vars
}

// configVar is how a string of a whole file uses a value of config_vars.
var configVar = regexp.MustCompile(`\{\{-?\s*\.config_vars\.([A-Za-z0-9_-]+)\s*-?\}\}`)

// substitute replaces the uses of config_vars in all strings of a value.
func (l *loader) substitute(at place.Place, value any, vars map[string]string) any {
	switch v := value.(type) {
	case string:
		return configVar.ReplaceAllStringFunc(v, func(use string) string {
			name := configVar.FindStringSubmatch(use)[1]
			if replacement, ok := vars[name]; ok {
				return replacement
			}
			d := l.At(place.Error, place.CodeReference, at, "config_vars has no %q", name)
			if near := place.Nearest(name, slices.Sorted(maps.Keys(vars))); near != "" {
				d = d.WithRemedy("did you mean %q?", near)
			}
			l.Diags = append(l.Diags, d)
			return use
		})
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = l.substitute(at.Item(i), item, vars)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = l.substitute(at.Below(key), v[key], vars)
		}
		return out
	}
	return value
}
