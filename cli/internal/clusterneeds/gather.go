// Package clusterneeds finds out what an app folder needs in a cluster: it
// collects what the components would apply, has berth-engine render it, and lets
// pkg/permissions make rules of it.
package clusterneeds

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/permissions"
)

// gathering collects the sources of a folder.
type gathering struct {
	folder appfolder.Folder
	app    *appconfig.App
	state  interpolate.State
	now    time.Time

	sources []permissions.Source
	copies  *permissions.Copies
	storage map[string]string // of Helm's releases, by component
	unknown []permissions.Note
}

// all goes through the app.
func (g *gathering) all() {
	if s := g.app.Sandbox; s != nil {
		src, ok := s.Source()
		g.terraform("sandbox", src, ok)
	}
	for i := range g.app.Components {
		c := &g.app.Components[i]
		switch {
		case c.HelmChart != nil:
			g.chart(c)
		case c.KubernetesManifest != nil:
			g.manifest(c)
		case c.TerraformModule != nil:
			src, ok := c.Source()
			g.terraform(c.Name, src, ok)
		}
	}
	for i := range g.app.Secrets {
		g.secret(&g.app.Secrets[i])
	}
	for i := range g.app.Actions {
		g.action(&g.app.Actions[i])
	}
}

func (g *gathering) note(from, format string, args ...any) {
	g.unknown = append(g.unknown, permissions.Note{From: from, Text: fmt.Sprintf(format, args...)})
}

// render renders a text of a component; what cannot be rendered is noted and
// left out.
func (g *gathering) render(from, file, text string) string {
	out, err := interpolate.Render(text, g.state, interpolate.Options{Now: g.now, File: file})
	if err != nil {
		g.note(from, "cannot be rendered: %v: say what it reads with --set, --state or --install", err)
		return ""
	}
	return check.WithoutEscapes(out)
}

func (g *gathering) at(name string, at string) string { return fmt.Sprintf("%s (%s)", name, at) }

func (g *gathering) chart(c *appconfig.Component) {
	h := c.HelmChart
	src, ok := c.Source()
	if !ok || src.Kind != appconfig.SourceLocal {
		g.note(g.at(c.Name, c.At.File), "its chart is not in the folder (%s): what it makes is not known. Take it with local_source to find out", cmp.Or(src.Repo, "a chart repository"))
		return
	}
	source := permissions.Source{
		Component: c.Name, Namespace: g.render(g.at(c.Name, c.At.File), c.At.File, h.Namespace), Release: h.ChartName,
		Chart: filepath.Join(g.folder.Written, filepath.FromSlash(src.Directory)), File: src.Directory, Values: map[string]string{},
	}
	if h.Namespace == "" {
		source.Namespace = g.installID()
	}
	for _, f := range h.ValuesFiles {
		file := cmp.Or(f.Contents.From(), c.At.File)
		source.ValuesFiles = append(source.ValuesFiles, g.render(g.at(c.Name, file), file, f.Contents.Contents))
	}
	for key, value := range h.Values {
		source.Values[key] = g.render(g.at(c.Name, c.At.File), c.At.File, value)
	}
	driver := cmp.Or(h.StorageDriver, g.driver(), appconfig.StorageSecret)
	if driver != appconfig.StorageNuon { // there is no object of it
		g.storage[c.Name] = driver + "s"
	}
	g.sources = append(g.sources, source)
}

func (g *gathering) driver() string {
	if g.app.Runner == nil {
		return ""
	}
	return g.app.Runner.HelmDriver
}

// installID is where a chart goes that names no namespace.
func (g *gathering) installID() string {
	tree, _ := g.state[interpolate.RootTree].(map[string]any)
	install, _ := tree["install"].(map[string]any)
	id, _ := install["id"].(string)
	return id
}

func (g *gathering) manifest(c *appconfig.Component) {
	src, ok := c.Source()
	k, file, text := c.KubernetesManifest, c.At.File, src.Text
	switch {
	case ok && src.Kind == appconfig.SourceText:
		if k.Manifest != nil {
			file = cmp.Or(k.Manifest.From(), file)
		}
	case ok && src.Kind == appconfig.SourceLocal:
		file = path.Join(src.Directory, src.File)
		data, err := fs.ReadFile(g.folder.Root, file)
		if err != nil {
			g.note(g.at(c.Name, c.At.File), "its manifest cannot be read: %v", err)
			return
		}
		text = string(data)
	default:
		g.note(g.at(c.Name, c.At.File), "its manifest is not in the folder (%s): what it makes is not known", cmp.Or(src.Repo, "made by kustomize"))
		return
	}
	g.sources = append(g.sources, permissions.Source{
		Component: c.Name, Namespace: strings.TrimSpace(g.render(g.at(c.Name, c.At.File), c.At.File, k.Namespace)),
		Manifest: g.render(g.at(c.Name, file), file, text), File: file,
	})
}

// execNamespaces are the namespaces in which probes of a component run commands.
func (g *gathering) execNamespaces(component, own string) (list []string) {
	c := g.app.Component(component)
	if c == nil {
		return nil
	}
	for _, written := range c.ExecNamespaces() {
		list = append(list, cmp.Or(strings.TrimSpace(g.render(g.at(c.Name, c.At.File), c.At.File, written)), own))
	}
	return list
}

// secret collects the copies of a secret in the cluster.
func (g *gathering) secret(s *appconfig.Secret) {
	from := g.at("secret "+s.Name, s.At.File)
	for _, t := range s.Copies() {
		if g.copies == nil {
			g.copies = &permissions.Copies{Inventory: g.installID()}
		}
		name := strings.TrimSpace(g.render(from, s.At.File, t.Name))
		for _, namespace := range t.Namespaces {
			g.copies.Secrets = append(g.copies.Secrets, permissions.Copy{Namespace: strings.TrimSpace(g.render(from, s.At.File, namespace)), Name: name})
		}
	}
}

// inCluster finds Terraform that works on a cluster.
var inCluster = regexp.MustCompile(`(?m)^\s*(provider|resource|data)\s+"(kubernetes|helm|kubectl)`)

func (g *gathering) terraform(name string, src appconfig.Source, ok bool) {
	if !ok || src.Kind != appconfig.SourceLocal {
		g.note(name, "its Terraform is not in the folder: whether it works on the cluster is not known")
		return
	}
	files, _ := fs.Glob(g.folder.Root, path.Join(src.Directory, "*.tf"))
	forTofu, _ := fs.Glob(g.folder.Root, path.Join(src.Directory, "*.tofu"))
	for _, file := range append(files, forTofu...) {
		data, err := fs.ReadFile(g.folder.Root, file)
		if err != nil {
			continue // a sync says so
		}
		if at := inCluster.FindIndex(data); at != nil {
			g.note(fmt.Sprintf("%s (%s:%d)", name, file, strings.Count(string(data[:at[1]]), "\n")+1),
				"Terraform works on the cluster here, with rights that only its plan shows: add them with --grant")
			return
		}
	}
}

// callsCluster finds scripts that talk to the cluster.
var callsCluster = regexp.MustCompile(`\b(kubectl|helm|kustomize|KUBECONFIG)\b`)

func (g *gathering) action(a *appconfig.Action) {
	for _, step := range a.Steps {
		from, text := a.At.File, step.Command
		if step.InlineContents != nil {
			from, text = cmp.Or(step.InlineContents.From(), from), step.InlineContents.Contents
		}
		var lines []string
		for i, line := range strings.Split(text, "\n") {
			if callsCluster.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				lines = append(lines, fmt.Sprint(i+1))
			}
		}
		switch {
		case len(lines) > 0:
			g.note(fmt.Sprintf("action %s (%s:%s)", a.Name, from, lines[0]),
				"the script calls the cluster (lines %s), with rights that cannot be read from it: add them with --grant", strings.Join(lines, ", "))
		case step.InlineContents == nil && (step.PublicRepo != nil || step.ConnectedRepo != nil):
			g.note(g.at("action "+a.Name, from), "its script is in a repository: what it does in the cluster is not known")
		}
	}
}

// Set puts values into a state: PATH=VALUE, a path being as templates read it,
// such as sandbox.outputs.namespace.
func Set(state interpolate.State, values map[string]string) error {
	tree, _ := state[interpolate.RootTree].(map[string]any)
	for _, p := range slices.Sorted(keys(values)) {
		at, parts := tree, strings.Split(strings.TrimPrefix(strings.TrimPrefix(p, ".nuon."), "nuon."), ".")
		for i, part := range parts {
			if part == "" {
				return fmt.Errorf("--set: %q is not a path such as sandbox.outputs.namespace", p)
			}
			if i == len(parts)-1 {
				at[part] = values[p]
				break
			}
			below, ok := at[part].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[part] = below
			}
			at = below
		}
	}
	return nil
}
