package drawing

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Node is what is written into a box.
type Node struct {
	Name string // who it is in the edges
	// Title and Text are the two lines.
	Title, Text string
	// State is a word that stands with its glyph; none without.
	State string
	Tone  Tone
}

// Arrow is a line with its reasons, which are shown when the pointer rests on it.
type Arrow struct {
	Edge
	Why []string
	// Implied lines are dashed.
	Implied bool
}

// Tone is how a state looks.
type Tone string

// The tones; each has a colour and a glyph of its own.
const (
	Good    Tone = "good"
	Bad     Tone = "bad"
	Busy    Tone = "busy"
	Warn    Tone = "warn"
	Unknown Tone = "unknown"
	Off     Tone = "off"
)

// The looks of tones. The colours have a contrast of 4.5 to both grounds.
var looks = map[Tone]struct{ light, dark, glyph string }{
	Good:    {"#18794e", "#3dd68c", "●"},
	Bad:     {"#ce2c31", "#ff9592", "✕"},
	Busy:    {"#0d74ce", "#70b8ff", "◐"},
	Warn:    {"#ab6400", "#ffca16", "▲"},
	Unknown: {"#60646c", "#b0b4ba", "◌"},
	Off:     {"#60646c", "#b0b4ba", "‖"},
}

// most is how many characters of a line fit into a box.
const most = 22

// SVG places a graph and draws it.
func SVG(title string, nodes []Node, arrows []Arrow) string {
	names, edges := make([]string, len(nodes)), make([]Edge, len(arrows))
	for i, n := range nodes {
		names[i] = n.Name
	}
	for i, a := range arrows {
		edges[i] = a.Edge
	}
	return Draw(title, Lay(names, edges), nodes, arrows)
}

// Draw draws a graph by its layout, for light and dark pages alike: no script, and nothing
// is loaded. The layout has a box for each node and a line for each arrow; one without points
// is left out.
func Draw(title string, l Layout, nodes []Node, arrows []Arrow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n",
		l.Width, l.Height, l.Width, l.Height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", escaped(title))
	b.WriteString(".box{fill:#fcfcfd;stroke:#b9bbc6}.line{fill:none;stroke:#80838d}.tip{fill:#80838d}.name{fill:#1c2024;font-weight:600}.text{fill:#60646c;font-size:12px}\n")
	for _, tone := range []Tone{Good, Bad, Busy, Warn, Unknown, Off} {
		fmt.Fprintf(&b, ".%s{fill:%s}", tone, looks[tone].light)
	}
	b.WriteString("\n@media (prefers-color-scheme:dark){.box{fill:#18191b;stroke:#5a6169}.line{stroke:#777b84}.tip{fill:#777b84}.name{fill:#edeef0}.text{fill:#b0b4ba}")
	for _, tone := range []Tone{Good, Bad, Busy, Warn, Unknown, Off} {
		fmt.Fprintf(&b, ".%s{fill:%s}", tone, looks[tone].dark)
	}
	b.WriteString("}\n</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path class=\"tip\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n")
	for i, a := range arrows {
		if len(l.Lines[i]) == 0 {
			continue
		}
		dashed := ""
		if a.Implied {
			dashed = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(&b, "<path class=\"line\" marker-end=\"url(#tip)\"%s d=\"%s\"><title>%s</title></path>\n", dashed, Path(l.Lines[i]),
			escaped(strings.Join(append([]string{a.From + " needs " + a.To}, a.Why...), "\n")))
	}
	for i, n := range nodes {
		box := l.Nodes[i]
		fmt.Fprintf(&b, "<g><title>%s</title><rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"6\"/>", escaped(words(n)), box.X, box.Y, box.Width, box.Height)
		fmt.Fprintf(&b, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>", box.X+12, box.Y+20, escaped(short(n.Title)))
		if n.State == "" {
			fmt.Fprintf(&b, "<text class=\"text\" x=\"%.1f\" y=\"%.1f\">%s</text></g>\n", box.X+12, box.Y+37, escaped(short(n.Text)))
			continue
		}
		look := looks[n.Tone]
		fmt.Fprintf(&b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" font-size=\"12\">%s %s</text></g>\n", n.Tone, box.X+12, box.Y+37, look.glyph, escaped(short(n.State)))
	}
	return b.String() + "</svg>\n"
}

// words are all that a node says, for those who do not see it.
func words(n Node) string {
	var said []string
	for _, s := range []string{n.Title, n.Text, n.State} {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, ", ")
}

// Path is the way of a line in the language of SVG: a curve between layers, straight
// through them.
func Path(points []Point) string {
	var b strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", p.X, p.Y)
		case i%2 == 0: // within a layer
			fmt.Fprintf(&b, "L%.1f %.1f", p.X, p.Y)
		default:
			half := (points[i-1].X + p.X) / 2
			fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", half, points[i-1].Y, half, p.Y, p.X, p.Y)
		}
	}
	return b.String()
}

// short breaks a long line in the middle.
func short(text string) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return string(runes[:most-9]) + "…" + string(runes[len(runes)-8:])
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes all
	return b.String()
}
