package rehearse

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

// Sizes of the picture of a graph, in pixels.
const (
	boxWidth, boxHeight = 190, 44
	gapAcross, gapDown  = 70, 16
	margin              = 10
	mostLetters         = 24 // of a name in a box
)

// picture draws a graph from left to right: each component right of what it needs.
// how is the class of each component.
func picture(g *graph.Graph, app *appconfig.App, how map[string]string) template.HTML {
	layers := g.Layers()
	if len(layers) == 0 {
		return ""
	}
	type point struct{ x, y int }
	at := map[string]point{}
	height := 0
	for i, layer := range layers {
		for j, name := range layer {
			at[name] = point{margin + i*(boxWidth+gapAcross), margin + j*(boxHeight+gapDown)}
		}
		height = max(height, len(layer))
	}
	width := 2*margin + len(layers)*(boxWidth+gapAcross) - gapAcross
	tall := 2*margin + height*(boxHeight+gapDown) - gapDown
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="Which component needs which">`, width, tall, width, tall)
	for _, e := range g.Edges {
		from, ok := at[e.To]
		to, also := at[e.From]
		if !ok || !also {
			continue // of a cycle
		}
		x1, y1, x2, y2 := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
		fmt.Fprintf(&b, `<path class="edge" d="M%d %d C%d %d %d %d %d %d"><title>%s needs %s</title></path>`,
			x1, y1, x1+gapAcross/2, y1, x2-gapAcross/2, y2, x2, y2, html.EscapeString(e.From), html.EscapeString(e.To))
	}
	for _, layer := range layers {
		for _, name := range layer {
			p := at[name]
			kind := ""
			if c := app.Component(name); c != nil {
				kind = string(c.Type)
			}
			fmt.Fprintf(&b, `<g class="node %s"><title>%s (%s): %s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
				html.EscapeString(how[name]), html.EscapeString(name), html.EscapeString(kind), html.EscapeString(strings.ReplaceAll(how[name], "-", " ")), p.x, p.y, boxWidth, boxHeight)
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><text class="kind" x="%d" y="%d">%s</text></g>`,
				p.x+12, p.y+19, html.EscapeString(cut(name)), p.x+12, p.y+35, html.EscapeString(cut(kind)))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // G203: all names in it are escaped
}

func cut(name string) string {
	runes := []rune(name)
	if len(runes) > mostLetters {
		return string(runes[:mostLetters-1]) + "…"
	}
	return name
}
