package rehearse

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path/filepath"
	"strings"
	texttemplate "text/template"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Verdict says what a line of a report is worth.
type Verdict string

// The verdicts.
const (
	Real       Verdict = "real"
	Mocked     Verdict = "mocked"      // planned with mocked providers, rendered without a cluster, or a sandbox of ours
	NotPlanned Verdict = "not planned" // with the reason; a stand-in gives its outputs
	Failed     Verdict = "failed"      // what is real did not work, with the reason
)

// Report is what came of a rehearsal. docs/guides/rehearsal.md says what each key of
// its JSON means.
type Report struct {
	App      string                   `json:"app"`
	Install  string                   `json:"install"` // "" when nothing could be built
	Platform ctlapi.RehearsalPlatform `json:"platform"`
	Release  int                      `json:"release"`
	Cluster  bool                     `json:"cluster"` // charts and manifests were really deployed
	Totals   map[Verdict]int          `json:"totals"`
	// Kinds are the totals of each kind of line.
	Kinds map[string]map[Verdict]int `json:"totals_by_kind"`
	// Reasons counts the lines that are not real, by what stands in their way.
	Reasons []Reason `json:"reasons"`
	// Lines are the sandbox, components in the order of deploying, actions, and all
	// else that the folder holds.
	Lines []Line `json:"lines"`
	// Graph is the app's, as a tree.
	Graph   string                   `json:"graph"`
	Images  []string                 `json:"images"` // of components, and of what charts and manifests render to
	Hosts   []Host                   `json:"hosts"`  // that sources, images and providers are from
	Outputs []ctlapi.RehearsalOutput `json:"outputs"`
	// Unread are outputs that are declared, given or always there, and that nothing reads.
	Unread []string `json:"unread_outputs"`
	// Undeclared are outputs that the app reads and that nothing here declares.
	Undeclared []Undeclared `json:"undeclared_outputs"`
	// Findings are what the checks warn of or note about the folder.
	Findings []string `json:"findings"`
	Inputs   []Input  `json:"inputs"`  // made up, because they are required and have no default
	Secrets  []string `json:"secrets"` // that the app declares; their names in templates are made up
	Spans    []Span   `json:"spans"`
	Seconds  float64  `json:"seconds"`

	picture template.HTML
}

// Reason is what stands in the way of some lines.
type Reason struct {
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	Count   int     `json:"count"`
}

// Host is one that an install of the app, or its builds, would ask.
type Host struct {
	Name string   `json:"name"`
	For  []string `json:"for"`
}

// Line is one thing that the app folder holds.
type Line struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"` // sandbox, component, action, trigger, runbook, input, secret, role, policy, stack, …
	Type    string  `json:"type,omitempty"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Plan is what it would do, as people read it.
	Plan      string   `json:"plan,omitempty"`
	Create    int      `json:"create"`
	Update    int      `json:"update"`
	Delete    int      `json:"delete"`
	Providers []string `json:"providers,omitempty"`
	Images    []string `json:"images,omitempty"`
	Notes     []string `json:"notes,omitempty"`  // keys of it that have no effect in this version
	Source    string   `json:"source,omitempty"` // the repository, chart or image that it is from
	Seconds   float64  `json:"seconds"`
}

// Span is a part of the time that a rehearsal took.
type Span struct {
	Name    string  `json:"name"` // "build", with the sync; "deploy"
	Seconds float64 `json:"seconds"`
}

// Input is an input of the app for which a value was made up.
type Input struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// hostOf is where a repository is: "owner/name" is one of GitHub.
func hostOf(repo string) string {
	repo = strings.TrimPrefix(repo, "git::")
	if _, rest, ok := strings.Cut(repo, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		_, after, at := strings.Cut(host, "@")
		if at {
			return after
		}
		return host
	}
	if _, rest, ok := strings.Cut(repo, "@"); ok {
		host, _, _ := strings.Cut(rest, ":")
		return host
	}
	if strings.Count(repo, "/") == 1 && !strings.HasPrefix(repo, ".") {
		return "github.com"
	}
	return ""
}

//go:embed report.html.tmpl
var htmlReport string

//go:embed report.md.tmpl
var mdReport string

// verdicts in the order of totals.
var verdicts = []Verdict{Real, Mocked, NotPlanned, Failed}

// Total says in one line how much of each there is.
func (r Report) Total() string {
	var parts []string
	for _, v := range verdicts {
		parts = append(parts, fmt.Sprintf("%d %s", r.Totals[v], v))
	}
	return strings.Join(parts, ", ")
}

// Format writes the report in the format that the name of a file asks for.
func (r Report) Format(name string) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch filepath.Ext(name) {
	case ".json":
		return json.MarshalIndent(r, "", "  ")
	case ".html":
		funcs := template.FuncMap{"string": text, "class": class, "planned": planned, "count": count, "total": func(v string) int { return r.Totals[Verdict(v)] }, "picture": func() template.HTML { return r.picture }}
		err = template.Must(template.New("report").Funcs(funcs).Parse(htmlReport)).Execute(&b, r)
	case ".md":
		err = texttemplate.Must(texttemplate.New("report").Funcs(texttemplate.FuncMap{"string": text, "cell": cell, "indent": indent, "count": count}).Parse(mdReport)).Execute(&b, r)
	default:
		err = usage.Errorf("--report %s: the name must end in .html, .md or .json", name)
	}
	return b.Bytes(), err
}

func text(v json.RawMessage) string { return string(v) }

// Worked are the lines of what is deployed or run.
func (r Report) Worked() []Line { return r.of(true) }

// Others are all other lines.
func (r Report) Others() []Line { return r.of(false) }

func (r Report) of(works bool) (lines []Line) {
	for _, l := range r.Lines {
		if stage.Works(stage.Part(l.Kind)) == works {
			lines = append(lines, l)
		}
	}
	return lines
}

// count is one total of a kind of lines.
func count(totals map[Verdict]int, v string) int { return totals[Verdict(v)] }

// planned tells whether the counts of a line are those of the app.
func planned(v Verdict) bool { return v == Real || v == Mocked }

// class is a verdict as the name of a class in a style sheet.
func class(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") }

// cell keeps a text inside of its cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}

// indent makes a text a block of code, whatever is in it.
func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
