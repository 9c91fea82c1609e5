package appconfig

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// The functions here turn one document of a kind, or one table of a whole
// config in a single file, into its block.

// read fills a block from a table and checks it on its own.
func read[B interface{ check(*checker) }](l *loader, at place.Place, values map[string]any, block B) B {
	l.Table(at, values, block)
	block.check(&l.rules)
	return block
}

// list reads a file that holds many definitions.
func (l *loader) list(at place.Place, values map[string]any, file any) {
	l.Table(at, values, file)
	l.lostLists(at, values, reflect.TypeOf(file).Elem())
}

// lostLists makes an error of a table whose key is misspelt in a file of
// definitions, instead of one of each use of what it defines.
func (l *loader) lostLists(at place.Place, values map[string]any, file reflect.Type) {
	known := bind.Keys(file)
	names := slices.Sorted(maps.Keys(known))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, isText := bind.Scalar(values[key]); isText || known[key] {
			continue
		}
		if near := l.Near(key, names); near != "" && l.Misspelt(at, near) {
			l.Lost = append(l.Lost, at.Below(key))
		}
	}
}

func (l *loader) metadata(at place.Place, values map[string]any) {
	managed := l.app.Metadata.CustomerManaged
	l.app.Metadata = Metadata{At: at}
	also := []reflect.Type{}
	if IsWholeFile(at.File) {
		also = append(also, reflect.TypeFor[WholeFile]())
	}
	l.TableAmong(at, values, also, &l.app.Metadata)
	if managed != nil {
		l.app.Metadata.CustomerManaged = managed
	}
	l.app.Metadata.check(&l.rules)
}

func (l *loader) sandbox(at place.Place, values map[string]any) {
	l.app.Sandbox = read(l, at, values, &Sandbox{At: at})
}

func (l *loader) runner(at place.Place, values map[string]any) {
	l.app.Runner = &Runner{At: at}
	l.Table(at, values, l.app.Runner)
}

func (l *loader) stack(at place.Place, values map[string]any) {
	l.app.Stack = read(l, at, values, &Stack{At: at})
}

// inputs reads inputs.toml (groups and inputs together) or one input per file
// below inputs/<group>/.
func (l *loader) inputs(at place.Place, values map[string]any) {
	if strings.Contains(at.File, "/") {
		if _, ok := values["group"]; !ok {
			if parts := strings.Split(at.File, "/"); len(parts) > 2 {
				values["group"] = parts[1]
			}
		}
		l.app.Inputs = append(l.app.Inputs, *read(l, at, values, &Input{At: at}))
		return
	}
	var file InputsFile
	l.list(at, values, &file)
	for i := range file.Groups {
		file.Groups[i].At = at.Below("group").Item(i)
	}
	for i := range file.Inputs {
		file.Inputs[i].At = at.Below("input").Item(i)
		file.Inputs[i].check(&l.rules)
	}
	l.app.InputGroups = append(l.app.InputGroups, file.Groups...)
	l.app.Inputs = append(l.app.Inputs, file.Inputs...)
}

func (l *loader) inputGroup(at place.Place, values map[string]any) {
	g := InputGroup{At: at}
	l.Table(at, values, &g)
	l.app.InputGroups = append(l.app.InputGroups, g)
}

// secrets reads secrets.toml, or files below secrets/ that hold one secret or
// an array of them.
func (l *loader) secrets(at place.Place, values map[string]any) {
	if _, many := values["secret"]; !many && strings.Contains(at.File, "/") {
		l.app.Secrets = append(l.app.Secrets, *read(l, at, values, &Secret{At: at}))
		return
	}
	var file SecretsFile
	l.list(at, values, &file)
	for i := range file.Secrets {
		file.Secrets[i].At = at.Below("secret").Item(i)
		file.Secrets[i].check(&l.rules)
	}
	l.app.Secrets = append(l.app.Secrets, file.Secrets...)
}

// permissions reads permissions.toml, a table per role, or a file below
// permissions/ that is one role.
func (l *loader) permissions(at place.Place, values map[string]any) {
	if strings.Contains(at.File, "/") {
		r := Role{At: at}
		l.Table(at, values, &r)
		if r.Type == "" && r.SourceFile == "" && !l.Misspelt(at, "type") {
			l.Add(place.Error, place.CodeMissing, at, "type is missing")
		}
		r.check(&l.rules)
		l.app.Permissions = append(l.app.Permissions, r)
		return
	}
	var file PermissionsFile
	l.list(at, values, &file)
	for _, t := range []struct {
		key  string
		role *Role
		kind RoleType
	}{
		{"provision_role", file.Provision, RoleProvision},
		{"maintenance_role", file.Maintenance, RoleMaintenance},
		{"deprovision_role", file.Deprovision, RoleDeprovision},
	} {
		if t.role == nil {
			continue
		}
		t.role.At = at.Below(t.key)
		if t.role.Type != "" && t.role.Type != t.kind {
			l.Add(place.Error, place.CodeValue, t.role.At.Below("type"), "type is %q; in %s it can only be %q", t.role.Type, t.key, t.kind)
		}
		t.role.Type = t.kind
		t.role.check(&l.rules)
		l.app.Permissions = append(l.app.Permissions, *t.role)
	}
}

// breakGlass reads break_glass.toml, or files below break_glass/ that hold one
// role or an array of them.
func (l *loader) breakGlass(at place.Place, values map[string]any) {
	var file BreakGlassFile
	if _, many := values["role"]; !many && strings.Contains(at.File, "/") {
		file.Roles = []Role{{}}
		l.Table(at, values, &file.Roles[0])
		file.Roles[0].At = at
	} else {
		l.list(at, values, &file)
		for i := range file.Roles {
			file.Roles[i].At = at.Below("role").Item(i)
		}
	}
	for _, r := range file.Roles {
		if r.Type != "" && r.Type != RoleBreakGlass {
			l.Add(place.Error, place.CodeValue, r.At.Below("type"), "type is %q; a break-glass role has no other type", r.Type)
		}
		r.Type = RoleBreakGlass
		r.check(&l.rules)
		l.app.BreakGlass = append(l.app.BreakGlass, r)
	}
}

// policies reads policies.toml, or files below policies/ that hold one policy
// or an array of them. A policy without a name is called as its file.
func (l *loader) policies(at place.Place, values map[string]any) {
	var file PoliciesFile
	if _, many := values["policy"]; !many && strings.Contains(at.File, "/") {
		file.Policies = []Policy{{}}
		l.Table(at, values, &file.Policies[0])
		file.Policies[0].At = at
		if p := &file.Policies[0]; p.Name == "" {
			p.Name = stem(at.File)
		}
	} else {
		l.list(at, values, &file)
		for i := range file.Policies {
			p := &file.Policies[i]
			p.At = at.Below("policy").Item(i)
			switch {
			case p.Name != "":
			case p.Contents.File != "":
				p.Name = stem(p.Contents.File)
			case p.Contents.Remote != "":
				p.Name = stemOfAddress(p.Contents.Remote)
			default:
				p.Name = "policy-" + strconv.Itoa(i+1)
			}
		}
	}
	for i := range file.Policies {
		file.Policies[i].check(&l.rules)
	}
	l.app.Policies = append(l.app.Policies, file.Policies...)
}

// stem is a file's name without folder and ending.
func stem(file string) string { return strings.TrimSuffix(path.Base(file), path.Ext(file)) }

// stemOfAddress is stem of the file at an address.
func stemOfAddress(address string) string {
	parsed, _ := fetch.ParseAddress(address) // it was read before
	file, _, _ := strings.Cut(parsed.URL, "?")
	if parsed.Git {
		file = parsed.Path
	}
	return stem(file)
}

// component reads the common keys and those of the component's type. A type
// that is close to one of ours is a mistake; any other is a plugin's.
func (l *loader) component(at place.Place, values map[string]any) {
	c := Component{At: at}
	values, _ = l.Included(at, values)
	typeName := typeOf(values)
	known, ok := ComponentType(typeName).row()
	switch {
	case ok:
		l.Table(at, values, &c, known.block(&c))
	case typeName == "":
		l.TableAmong(at, values, TypeBlocks(), &c)
	case place.Nearest(typeName, ComponentTypeNames()) != "":
		l.OneOf(at.Below("type"), typeName, ComponentTypeNames()...)
		c.Name, _ = values["name"].(string)
		c.Type = ComponentType(typeName)
		l.keepComponent(c)
		return
	default:
		common, own := splitKeys(values, bind.Keys(reflect.TypeFor[Component]()))
		l.Table(at, common, &c)
		c.Plugin = plainTable(own)
	}
	if c.Type == TypeExternalImage {
		c.Type = TypeContainerImage
	}
	c.check(&l.rules)
	l.keepComponent(c)
}

// typeOf is what a component says of its type, under a misspelt key too: binding
// its table reports that.
func typeOf(values map[string]any) string {
	if name, ok := values["type"].(string); ok {
		return name
	}
	for key, value := range values {
		name, isText := value.(string)
		if _, ok := ComponentType(name).row(); isText && ok && place.Nearest(key, []string{"type"}) != "" {
			return name
		}
	}
	return ""
}

// TypeBlock is the struct with the keys of one component type of the language.
func TypeBlock(t ComponentType) reflect.Type {
	row, _ := t.row()
	return reflect.TypeOf(row.block(&Component{})).Elem()
}

// TypeBlocks lists the blocks of all component types.
func TypeBlocks() []reflect.Type {
	var blocks []reflect.Type
	for _, name := range ComponentTypeNames() {
		block := TypeBlock(ComponentType(name))
		if !slices.Contains(blocks, block) {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// splitKeys parts the keys that are known from the others.
func splitKeys(values map[string]any, known map[string]bool) (mine, others map[string]any) {
	mine, others = map[string]any{}, map[string]any{}
	for key, value := range values {
		if known[key] {
			mine[key] = value
		} else {
			others[key] = value
		}
	}
	return mine, others
}

// plainTable keeps what JSON can say without loss; other scalars become text.
func plainTable(table map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range table {
		out[key] = plainValue(value)
	}
	return out
}

func plainValue(value any) any {
	switch v := value.(type) {
	case string, bool, int64:
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainValue(v[i])
		}
		return out
	case map[string]any:
		return plainTable(v)
	}
	text, _ := bind.Scalar(value)
	return text
}

func (l *loader) keepComponent(c Component) {
	if c.Name == "" {
		l.app.unreadable["components"] = true
	}
	l.app.Components = append(l.app.Components, c)
}

func (l *loader) action(at place.Place, values map[string]any) {
	a := read(l, at, values, &Action{At: at, EnableKubeConfig: true})
	if a.Name == "" {
		l.app.unreadable["actions"] = true
	}
	l.app.Actions = append(l.app.Actions, *a)
}

func (l *loader) runbook(at place.Place, values map[string]any) {
	l.app.Runbooks = append(l.app.Runbooks, *read(l, at, values, &Runbook{At: at}))
}

func (l *loader) install(at place.Place, values map[string]any) {
	l.app.Installs = append(l.app.Installs, *read(l, at, values, &InstallConfig{At: at}))
}

func (l *loader) installsRepo(at place.Place, values map[string]any) {
	l.app.InstallsRepo = read(l, at, values, &InstallsRepo{At: at})
}

func (l *loader) branch(at place.Place, values map[string]any) {
	l.app.Branches = append(l.app.Branches, *read(l, at, values, &Branch{At: at}))
}

func (l *loader) operationRoles(at place.Place, values map[string]any) {
	l.app.OperationRoles = read(l, at, values, &OperationRoles{At: at})
}

// kubernetesContexts reads kubernetes_contexts.toml, or files below
// kubernetes_contexts/ that hold one context or an array of them.
func (l *loader) kubernetesContexts(at place.Place, values map[string]any) {
	if _, many := values["kubernetes_context"]; !many && strings.Contains(at.File, "/") {
		l.app.KubernetesContexts = append(l.app.KubernetesContexts, *read(l, at, values, &KubernetesContext{At: at}))
		return
	}
	var file KubernetesContextsFile
	l.list(at, values, &file)
	for i := range file.Contexts {
		file.Contexts[i].At = at.Below("kubernetes_context").Item(i)
		file.Contexts[i].check(&l.rules)
	}
	l.app.KubernetesContexts = append(l.app.KubernetesContexts, file.Contexts...)
}

func (l *loader) eventTriggers(at place.Place, values map[string]any) {
	var file EventTriggersFile
	l.list(at, values, &file)
	list := at.Below("triggers")
	if _, ok := values["triggers"]; !ok {
		list = at.Below("trigger") // its other name
	}
	for i := range file.Triggers {
		file.Triggers[i].At = list.Item(i)
		file.Triggers[i].check(&l.rules)
	}
	l.app.EventTriggers = append(l.app.EventTriggers, file.Triggers...)
}

func (l *loader) customerManaged(at place.Place, values map[string]any) {
	if l.app.Metadata.CustomerManaged != nil {
		l.bothDefine(l.app.Metadata.At.Below("customer_managed"), at.File)
		return
	}
	l.app.Metadata.CustomerManaged = &CustomerManaged{}
	l.Table(at, values, l.app.Metadata.CustomerManaged)
	l.app.Metadata.CustomerManaged.check(&l.rules, at)
}

func (l *loader) installer(at place.Place, values map[string]any) {
	l.app.Installer = &Installer{At: at}
	l.Table(at, values, l.app.Installer)
}
