// Package readme makes the page of an install: the app's README, rendered with
// what is known of the install, as Markdown, as HTML that is safe to put into a
// page, and its widgets as data.
//
// Who writes a README is the vendor, and what it shows are values of the customer;
// whoever reads it trusts neither. So HTML is parsed, its widgets are taken out,
// and what is left passes a list of what is allowed: no script, no style, no form,
// no frame, and nothing that the browser fetches by itself, such as an image.
package readme

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
)

// maxBytes bounds the rendered Markdown: a page for people.
const maxBytes = 256 << 10

// widgetAttribute marks the place of a widget in the HTML, by its index.
const widgetAttribute = "data-widget"

// Widget is a tag of the README that a dashboard draws, such as <nuon-status>; a
// callout ("> [!NOTE]"); or a Mermaid diagram.
type Widget struct {
	// Type is the tag without its prefix: tabs, tab, banner, status, badge, panel,
	// group, time, component-card, run-runbook, config-graph or whatever else
	// stands there; callout; mermaid.
	Type       string
	Attributes map[string]string
	// Text is what stands in it, without markup.
	Text string
}

// Page is a rendered README.
type Page struct {
	Markdown string
	// HTML is safe to show. The content of widget n is in a div with data-widget="n".
	HTML    string
	Widgets []Widget
}

// Render renders a README with an install's state tree. Sealed values are shown as
// "(sealed)"; nothing opens them here. Errors are those of the template, for the
// vendor to read: they name paths, never values.
func Render(source string, tree map[string]any, now time.Time) (Page, error) {
	shown, _ := seal.RedactLeaves(tree).(map[string]any)
	text, err := interpolate.RenderAlways(source, interpolate.NewState(shown), interpolate.Options{Now: now, File: "README", MaxOutput: maxBytes})
	if err != nil {
		return Page{}, err
	}
	page := Page{Markdown: text}
	page.HTML, page.Widgets, err = toHTML(text)
	return page, err
}

// markdown writes raw HTML as it is, because widgets are raw HTML; sanitise comes
// after it.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(goldhtml.WithUnsafe()))

func toHTML(text string) (string, []Widget, error) {
	var raw bytes.Buffer
	if err := markdown.Convert([]byte(text), &raw); err != nil {
		return "", nil, fmt.Errorf("read Markdown: %w", err)
	}
	root := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(&raw, root)
	if err != nil { // it is nested too deeply
		return "", nil, fmt.Errorf("read HTML: %w", err)
	}
	for _, n := range nodes {
		root.AppendChild(n)
	}
	var c collector
	c.walk(root)
	var out bytes.Buffer
	for n := root.FirstChild; n != nil; n = n.NextSibling {
		if err := html.Render(&out, n); err != nil {
			return "", nil, fmt.Errorf("write HTML: %w", err)
		}
	}
	return allowed.Sanitize(out.String()), c.widgets, nil
}

// collector takes the widgets out of a tree. It leaves a div with the index in the
// place of each; what is inside stays inside.
type collector struct{ widgets []Widget }

func (c *collector) walk(n *html.Node) {
	n.Attr = without(n.Attr, widgetAttribute) // only ours count
	if w, ok := widgetOf(n); ok {
		n.Data, n.DataAtom, n.Namespace = "div", atom.Div, ""
		n.Attr = []html.Attribute{{Key: widgetAttribute, Val: strconv.Itoa(len(c.widgets))}}
		c.widgets = append(c.widgets, w)
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		c.walk(child)
	}
}

// prefixes of the tags of widgets.
var prefixes = []string{"nuon-", "berth-"}

var calloutMark = regexp.MustCompile(`^\s*\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*`)

func widgetOf(n *html.Node) (Widget, bool) {
	if n.Type != html.ElementNode {
		return Widget{}, false
	}
	for _, prefix := range prefixes {
		if name, ok := strings.CutPrefix(n.Data, prefix); ok {
			w := Widget{Type: name, Attributes: map[string]string{}, Text: textOf(n)}
			for _, a := range n.Attr {
				w.Attributes[a.Key] = a.Val
			}
			return w, true
		}
	}
	switch n.DataAtom {
	case atom.Blockquote:
		first := firstText(n)
		if first == nil {
			break
		}
		if mark := calloutMark.FindStringSubmatch(first.Data); mark != nil {
			first.Data = strings.TrimPrefix(first.Data, mark[0])
			return Widget{Type: "callout", Attributes: map[string]string{"theme": strings.ToLower(mark[1])}, Text: textOf(n)}, true
		}
	case atom.Pre:
		if code := n.FirstChild; code != nil && code.DataAtom == atom.Code && attribute(code, "class") == "language-mermaid" {
			return Widget{Type: "mermaid", Attributes: map[string]string{}, Text: textOf(n)}, true
		}
	}
	return Widget{}, false
}

func firstText(n *html.Node) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.TextNode && strings.TrimSpace(d.Data) != "" {
			return d
		}
	}
	return nil
}

// textOf is the text in a node, of scripts and styles too: it is data, not markup.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func without(list []html.Attribute, key string) []html.Attribute {
	var out []html.Attribute
	for _, a := range list {
		if a.Key != key {
			out = append(out, a)
		}
	}
	return out
}

// allowed is what is left of HTML: text, its structure, tables and links that
// somebody has to click. A link tells the other side nothing about the page.
var allowed = policy()

func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "kbd", "samp", "em", "strong", "b", "i", "s", "del", "ins",
		"sub", "sup", "mark", "small", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "details", "summary", "div", "span")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("open").Matching(regexp.MustCompile(`^(open)?$`)).OnElements("details")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[a-zA-Z0-9+#-]+$`)).OnElements("code")
	p.AllowAttrs(widgetAttribute).Matching(bluemonday.Integer).OnElements("div")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("https", "http", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}
