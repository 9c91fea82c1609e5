package appconfig

import "strings"

// The functions here turn one document of a kind into its block.

func (l *loader) metadata(doc *document) {
	l.app.Metadata.At = Place{File: doc.file}
	l.table(l.app.Metadata.At, doc.values, &l.app.Metadata)
	l.app.Metadata.check(&l.checker)
}

func (l *loader) sandbox(doc *document) {
	s := &Sandbox{At: Place{File: doc.file}}
	l.app.Sandbox = s
	if doc.values["type"] == "pulumi" {
		l.unsupported(s.At.key("type"), "sandbox type %q is", "pulumi")
		return
	}
	l.table(s.At, doc.values, s)
	s.check(&l.checker)
}

func (l *loader) runner(doc *document) {
	l.app.Runner = &Runner{At: Place{File: doc.file}}
	l.table(l.app.Runner.At, doc.values, l.app.Runner)
	l.app.Runner.check(&l.checker)
}

func (l *loader) stack(doc *document) {
	l.app.Stack = &Stack{At: Place{File: doc.file}}
	l.table(l.app.Stack.At, doc.values, l.app.Stack)
	l.app.Stack.check(&l.checker)
}

// inputs reads inputs.toml (groups and inputs together) or one input per file
// below inputs/<group>/.
func (l *loader) inputs(doc *document) {
	if doc.file != "inputs.toml" {
		in := Input{At: Place{File: doc.file}}
		if _, ok := doc.values["group"]; !ok {
			if parts := strings.Split(doc.file, "/"); len(parts) > 2 {
				doc.values["group"] = parts[1]
			}
		}
		l.table(in.At, doc.values, &in)
		in.check(&l.checker)
		l.app.Inputs = append(l.app.Inputs, in)
		return
	}
	var file struct {
		Groups []InputGroup `toml:"group"`
		Inputs []Input      `toml:"input"`
	}
	at := Place{File: doc.file}
	l.table(at, doc.values, &file)
	for i := range file.Groups {
		file.Groups[i].At = at.key("group").item(i)
	}
	for i := range file.Inputs {
		file.Inputs[i].At = at.key("input").item(i)
		file.Inputs[i].check(&l.checker)
	}
	l.app.InputGroups = append(l.app.InputGroups, file.Groups...)
	l.app.Inputs = append(l.app.Inputs, file.Inputs...)
}

func (l *loader) inputGroup(doc *document) {
	g := InputGroup{At: Place{File: doc.file}}
	l.table(g.At, doc.values, &g)
	l.app.InputGroups = append(l.app.InputGroups, g)
}

// secrets reads secrets.toml, or files below secrets/ that hold one secret or
// an array of them.
func (l *loader) secrets(doc *document) {
	at := Place{File: doc.file}
	if _, many := doc.values["secret"]; !many && doc.file != "secrets.toml" {
		s := Secret{At: at}
		l.table(at, doc.values, &s)
		s.check(&l.checker)
		l.app.Secrets = append(l.app.Secrets, s)
		return
	}
	var file struct {
		Secrets []Secret `toml:"secret"`
	}
	l.table(at, doc.values, &file)
	for i := range file.Secrets {
		file.Secrets[i].At = at.key("secret").item(i)
		file.Secrets[i].check(&l.checker)
	}
	l.app.Secrets = append(l.app.Secrets, file.Secrets...)
}

// component reads the common keys and those of the component's type.
func (l *loader) component(doc *document) {
	c := Component{At: Place{File: doc.file}}
	typeName, _ := doc.values["type"].(string)
	known, ok := componentTypes[ComponentType(typeName)]
	switch {
	case !ok && typeName != "":
		l.oneOf(c.At.key("type"), typeName, componentTypeNames()...)
		l.nameOnly(doc, &c)
		return
	case ok && known.block == nil:
		l.unsupported(c.At.key("type"), "component type %q is", typeName)
		l.nameOnly(doc, &c)
		return
	}
	targets := []any{&c}
	if ok {
		targets = append(targets, known.block(&c))
	}
	l.table(c.At, doc.values, targets...)
	if c.Type == typeExternalImage {
		c.Type = TypeContainerImage
	}
	c.check(&l.checker)
	l.keepComponent(c)
}

// nameOnly keeps a component that is in error anyway, so that references to it
// are not reported as well.
func (l *loader) nameOnly(doc *document, c *Component) {
	c.Name, _ = doc.values["name"].(string)
	typeName, _ := doc.values["type"].(string)
	c.Type = ComponentType(typeName)
	l.keepComponent(*c)
}

func (l *loader) keepComponent(c Component) {
	if c.Name == "" {
		l.app.unreadable["components"] = true
	}
	l.app.Components = append(l.app.Components, c)
}

func (l *loader) action(doc *document) {
	a := Action{At: Place{File: doc.file}, EnableKubeConfig: true}
	l.table(a.At, doc.values, &a)
	a.check(&l.checker)
	if a.Name == "" {
		l.app.unreadable["actions"] = true
	}
	l.app.Actions = append(l.app.Actions, a)
}
