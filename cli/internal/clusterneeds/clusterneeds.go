package clusterneeds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/pkg/visible"
)

// Asked is what a person adds to what the folder says.
type Asked struct {
	Grants, Kinds, Allow []string
}

// Folder is an app folder with the state that its templates read.
type Folder struct {
	appfolder.Folder
	App   *appconfig.App
	State interpolate.State
	Now   time.Time
}

// List computes what the app needs. The engine renders; nothing asks a cluster.
func List(ctx context.Context, f Folder, asked Asked) (permissions.List, error) {
	app, err := asked.parse()
	if err != nil {
		return permissions.List{}, err
	}
	g := gathering{folder: f.Folder, app: f.App, state: f.State, now: f.Now, storage: map[string]string{}}
	g.all()
	rendered, err := render(ctx, g.sources)
	if err != nil {
		return permissions.List{}, err
	}
	for i, r := range rendered {
		app.Components = append(app.Components, permissions.Component{
			Name: r.Component, Namespace: g.sources[i].Namespace, Storage: g.storage[r.Component], Objects: r.Objects,
			Exec: g.execNamespaces(r.Component, g.sources[i].Namespace),
		})
		g.unknown = append(g.unknown, r.Unknown...)
	}
	app.Copies = g.copies
	list := permissions.Compute(app)
	list.Unknown = append(g.unknown, list.Unknown...)
	if list.Unknown == nil {
		list.Unknown = []permissions.Note{}
	}
	return list, nil
}

// renderTime bounds the rendering of all charts.
const renderTime = 2 * time.Minute

// render has the engine render: this program links no Helm.
func render(ctx context.Context, sources []permissions.Source) ([]permissions.Rendered, error) {
	engine, err := findEngine()
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	request, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, engine, "objects")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), &out, &said
	cmd.Env = []string{} // templates cannot read it, and nothing else needs it
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", engine, err, visible.Line(strings.TrimSpace(said.String())))
	}
	var rendered []permissions.Rendered
	if err := json.Unmarshal(out.Bytes(), &rendered); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", engine, err)
	}
	if len(rendered) != len(sources) {
		return nil, fmt.Errorf("%s rendered %d of %d components: use the one of this release of berth", engine, len(rendered), len(sources))
	}
	return rendered, nil
}

// findEngine is berth-engine next to this program, or in BERTH_LIBEXEC.
func findEngine() (string, error) {
	const name = "berth-engine"
	dirs := []string{os.Getenv("BERTH_LIBEXEC")}
	if self, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			dirs = append(dirs, filepath.Dir(resolved))
		}
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", errors.New("berth-engine, which renders charts, is not next to berth: unpack the whole archive of the release, or set BERTH_LIBEXEC to the folder where it is")
}

// parse reads the flags.
func (a Asked) parse() (permissions.App, error) {
	var app permissions.App
	for _, verb := range a.Allow {
		if !strings.Contains(" "+strings.Join(permissions.Escalating(), " ")+" ", " "+verb+" ") {
			return app, usage.Errorf("--allow is %q, not %s", verb, strings.Join(permissions.Escalating(), ", "))
		}
		app.Allowed = append(app.Allowed, verb)
	}
	for _, text := range a.Grants {
		verbs, what, ok := strings.Cut(text, ":")
		if !ok || verbs == "" || what == "" {
			return app, usage.Errorf("--grant is %q, not VERB,VERB:RESOURCE such as get,list:pods, get:services/proxy or get:deployments.apps", text)
		}
		kind, part, isPart := strings.Cut(what, "/")
		resource, group, _ := strings.Cut(kind, ".")
		if isPart {
			resource += "/" + part
		}
		app.Grants = append(app.Grants, permissions.Rule{
			Group: group, Resource: resource, Verbs: strings.Split(verbs, ","), Reasons: []string{"asked for with --grant"}, From: []string{"--grant " + text},
		})
	}
	for _, text := range a.Kinds {
		what, served, ok := strings.Cut(text, "=")
		group, kind, isKind := strings.Cut(what, "/")
		resource, scope, _ := strings.Cut(served, ":")
		if !ok || !isKind || resource == "" || scope != "" && scope != "cluster" {
			return app, usage.Errorf("--kind is %q, not GROUP/KIND=RESOURCE such as cert-manager.io/Certificate=certificates, with :cluster behind it for a kind outside of namespaces", text)
		}
		app.Kinds = append(app.Kinds, permissions.Kind{Group: group, Kind: kind, Resource: resource, Namespaced: scope == ""})
	}
	return app, nil
}

// Text shows a list to people.
func Text(w io.Writer, l permissions.List) error {
	var b strings.Builder
	last := "-"
	for _, r := range l.Rules {
		if r.Namespace != last {
			last = r.Namespace
			if last == "" {
				b.WriteString("in the whole cluster\n")
			} else {
				fmt.Fprintf(&b, "in the namespace %s\n", last)
			}
		}
		fmt.Fprintf(&b, "  %s\n      %s\n      for %s\n", visible.Row(r.String()), visible.Row(strings.Join(r.Reasons, "; ")), visible.Row(strings.Join(r.From, ", ")))
	}
	for title, notes := range notesOf(l) {
		if len(notes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, n := range notes {
			fmt.Fprintf(&b, "  %s\n      %s\n", visible.Row(n.From), visible.Row(n.Text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func notesOf(l permissions.List) iter.Seq2[string, []permissions.Note] {
	return func(yield func(string, []permissions.Note) bool) {
		_ = yield("withheld, because engines could get further rights with it", l.Withheld) &&
			yield("not known, so that rules may be missing", l.Unknown)
	}
}

func keys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
