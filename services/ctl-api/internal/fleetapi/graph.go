package fleetapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/drawing"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetConfigGraph answers which components of a config need which.
func (h *Fleet) GetConfigGraph(ctx context.Context, req apigen.GetConfigGraphRequestObject) (apigen.GetConfigGraphResponseObject, error) {
	var out apigen.Graph
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		find := ctldb.FindConfigParams{ID: req.Config}
		if app, number, ok := strings.Cut(req.Config, "@"); ok {
			if n, err := strconv.ParseInt(number, 10, 32); err == nil {
				find = ctldb.FindConfigParams{AppName: app, Number: int32(n)}
			}
		}
		row, err := tx.FindConfig(ctx, find)
		if err != nil {
			return missing(err, "there is no config %q", req.Config)
		}
		var app appconfig.App
		if err := json.Unmarshal(row.Config.Body, &app); err != nil {
			return fmt.Errorf("read config %s: %w", row.Config.ID, err)
		}
		out = graphOf(&app, places{shown: true}, string(optional.Value(req.Params.Drawing)))
		return nil
	})
	return apigen.GetConfigGraph200JSONResponse(out), err
}

// GetInstallGraph answers which resources of an install need which.
func (h *Fleet) GetInstallGraph(ctx context.Context, req apigen.GetInstallGraphRequestObject) (apigen.GetInstallGraphResponseObject, error) {
	var out apigen.Graph
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		if install.ReleaseID == nil {
			return fault.With(fault.Newf(fault.ErrConflict, "install %s has no release yet", install.Name), fault.Code("no_release"),
				fault.Remedy("provision it; the graph of a config shows what the app says"))
		}
		app, err := releaseview.App(ctx, tx.Queries, *install.ReleaseID)
		if err != nil {
			return err
		}
		rows, err := tx.ResourcesOfInstalls(ctx, ctldb.ResourcesOfInstallsParams{InstallID: install.ID, Everywhere: true, Most: maxNodes})
		if err != nil {
			return err
		}
		toggles := map[string]bool{}
		if err := json.Unmarshal(install.Toggles, &toggles); err != nil {
			return fmt.Errorf("read toggles of install %s: %w", install.ID, err)
		}
		out = graphOf(app, places{}, "")
		addLive(&out, rows)
		for i := range app.Components {
			if c := &app.Components[i]; !c.EnabledIn(toggles) {
				node(&out, string(model.KindComponent), c.Name).SwitchedOff = true
			}
		}
		return nil
	})
	return apigen.GetInstallGraph200JSONResponse(out), err
}

// maxNodes is more than the components that an app may have.
const maxNodes = 5000

// places says whether a graph shows where in the app folder a need is written:
// customers see the graph of their install, and the folder is the vendor's.
type places struct{ shown bool }

// graphOf is the graph of an app with its sandbox, which every component comes
// after. A drawing, which has the components alone, is made by package graph.
func graphOf(app *appconfig.App, at places, drawing string) apigen.Graph {
	g, _ := graph.New(app)
	out := apigen.Graph{
		Nodes: []apigen.GraphNode{{Name: kindSandbox, Kind: apigen.GraphNodeKindSandbox, Type: sandboxType(app)}}, Edges: []apigen.GraphEdge{},
		Layers: [][]string{{kindSandbox}},
	}
	for i := range app.Components {
		c := &app.Components[i]
		out.Nodes = append(out.Nodes, apigen.GraphNode{Name: c.Name, Kind: apigen.GraphNodeKindComponent, Type: string(c.Type)})
		out.Edges = append(out.Edges, apigen.GraphEdge{From: c.Name, To: kindSandbox, Reasons: []apigen.GraphReason{{Kind: apigen.GraphReasonKindOrder}}})
	}
	for _, e := range g.Edges {
		edge := apigen.GraphEdge{From: e.From, To: e.To, Reasons: []apigen.GraphReason{}}
		for _, r := range e.Reasons {
			edge.Reasons = append(edge.Reasons, reasonView(r, at))
		}
		out.Edges = append(out.Edges, edge)
	}
	out.Layers = append(out.Layers, g.Layers()...)
	out.Layout = layoutOf(out)
	switch drawing {
	case "text":
		out.Drawing = g.Tree()
	case "dot":
		out.Drawing = g.DOT()
	case "mermaid":
		out.Drawing = g.Mermaid()
	}
	return out
}

// layoutOf places the nodes. That the sandbox comes before a component goes without saying
// where the component needs another one.
func layoutOf(g apigen.Graph) apigen.GraphLayout {
	names, needs := make([]string, len(g.Nodes)), map[string]bool{}
	for i, n := range g.Nodes {
		names[i] = string(n.Kind) + " " + n.Name // a component may be called sandbox too
	}
	ordered := func(e apigen.GraphEdge) bool { return e.Reasons[0].Kind == apigen.GraphReasonKindOrder }
	for _, e := range g.Edges {
		needs[e.From] = needs[e.From] || !ordered(e)
	}
	edges := make([]drawing.Edge, len(g.Edges))
	for i, e := range g.Edges {
		from, to := string(apigen.GraphNodeKindComponent)+" "+e.From, string(apigen.GraphNodeKindComponent)+" "+e.To
		if ordered(e) {
			to = string(apigen.GraphNodeKindSandbox) + " " + e.To
		}
		if !ordered(e) || !needs[e.From] {
			edges[i] = drawing.Edge{From: from, To: to}
		}
	}
	l := drawing.Lay(names, edges)
	out := apigen.GraphLayout{Width: l.Width, Height: l.Height, Boxes: []apigen.GraphBox{}, Lines: [][]apigen.GraphPoint{}}
	for _, b := range l.Nodes {
		out.Boxes = append(out.Boxes, apigen.GraphBox{X: b.X, Y: b.Y, Width: b.Width, Height: b.Height})
	}
	for _, points := range l.Lines {
		way := []apigen.GraphPoint{}
		for _, p := range points {
			way = append(way, apigen.GraphPoint(p))
		}
		out.Lines = append(out.Lines, way)
	}
	return out
}

func sandboxType(app *appconfig.App) string {
	if app.Sandbox == nil {
		return ""
	}
	return app.Sandbox.Type
}

func reasonView(r graph.Reason, at places) apigen.GraphReason {
	out := apigen.GraphReason{Kind: apigen.GraphReasonKindDependencies, Reference: r.Reference, KubernetesContext: r.Context}
	switch {
	case r.Reference != "":
		out.Kind = apigen.GraphReasonKindReference
	case r.Context != "":
		out.Kind = apigen.GraphReasonKindContext
	}
	if at.shown {
		out.File, out.Line = r.File, r.Line
	}
	return out
}

// addLive puts into the nodes what is live of them.
func addLive(g *apigen.Graph, rows []ctldb.ResourcesOfInstallsRow) {
	for _, r := range rows {
		if n := node(g, string(r.Kind), r.Name); n != nil {
			n.ResourceID, n.State, n.Health = &r.ID, optional.Of(apigen.StateOfResource(r.State)), optional.Of(apigen.HealthVerdict(r.Health))
		}
	}
}

// node finds a node, nil for none. A component may be called sandbox too.
func node(g *apigen.Graph, kind, name string) *apigen.GraphNode {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; string(n.Kind) == kind && n.Name == name {
			return n
		}
	}
	return nil
}
