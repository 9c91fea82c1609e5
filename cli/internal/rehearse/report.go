package rehearse

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"strings"
	texttemplate "text/template"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Verdict says what a line of a report is worth.
type Verdict string

// The verdicts.
const (
	Real       Verdict = "real"
	Mocked     Verdict = "mocked"      // a stand-in, planned with mocked providers or given by us
	NotPlanned Verdict = "not planned" // with the reason
	Failed     Verdict = "failed"      // what is real did not work, with the reason
)

// Report is what came of a rehearsal.
type Report struct {
	App      string                   `json:"app"`
	Install  string                   `json:"install"`
	Platform ctlapi.RehearsalPlatform `json:"platform"`
	Release  int                      `json:"release"`
	Totals   map[Verdict]int          `json:"totals"`
	Lines    []Line                   `json:"lines"`
	// Graph is the app's, as a tree.
	Graph   string                   `json:"graph"`
	Images  []string                 `json:"images"`
	Hosts   []string                 `json:"hosts"` // that sources, images and providers are from
	Outputs []ctlapi.RehearsalOutput `json:"outputs"`
	Seconds float64                  `json:"seconds"`
}

// Line is the sandbox, a component or an action.
type Line struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"` // of the step
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Plan is what it would do, as people read it.
	Plan      string   `json:"plan,omitempty"`
	Create    int      `json:"create"`
	Update    int      `json:"update"`
	Delete    int      `json:"delete"`
	Providers []string `json:"providers,omitempty"`
	Seconds   float64  `json:"seconds"`
}

// judge says what a step of a provision came to; change is nil for one that was
// never planned.
func judge(step ctlapi.Step, change *ctlapi.Change) Line {
	l := Line{Name: step.Name, Kind: step.Kind, Verdict: Real}
	if step.StartedAt != nil && step.FinishedAt != nil {
		l.Seconds = step.FinishedAt.Sub(*step.StartedAt).Seconds()
	}
	if change != nil && change.Plan != nil {
		p := change.Plan
		l.Plan, l.Create, l.Update, l.Delete = p.Text, p.Create, p.Update+p.Replace, p.Delete
		if r := p.Rehearsed; r != nil {
			l.Verdict, l.Why, l.Providers = Mocked, r.Why, r.Providers
			if r.How == ctlapi.RehearsedHowNotPlanned {
				l.Verdict = NotPlanned
			}
		}
	}
	switch {
	case step.Error != nil:
		l.Verdict, l.Why = Failed, *step.Error
		if step.Remedy != nil {
			l.Why += "; " + *step.Remedy
		}
	case step.State != ctlapi.StepStateSucceeded:
		l.Verdict, l.Why = NotPlanned, "the provision ended before it: its step is "+string(step.State)
	}
	return l
}

// counts tells whether a step is a line of a report: the rest is waiting.
func counts(step ctlapi.Step) bool {
	return slices.Contains([]string{"deploy", "action", "accept"}, step.Kind)
}

// describe adds what the app folder says.
func (r *Report) describe(app *appconfig.App) {
	g, _ := graph.New(app)
	r.Graph = g.Tree()
	hosts := map[string]bool{}
	for _, c := range app.Components {
		if c.ContainerImage == nil || c.ContainerImage.Public == nil {
			continue
		}
		image := c.ContainerImage.Public.ImageURL + ":" + c.ContainerImage.Public.Tag
		r.Images = append(r.Images, image)
		host, _, slash := strings.Cut(image, "/")
		if !slash || !strings.ContainsAny(host, ".:") {
			host = "docker.io"
		}
		hosts[host] = true
	}
	for _, s := range appconfig.Sources(app) {
		if host := hostOf(s.Repo); host != "" {
			hosts[host] = true
		}
	}
	for _, l := range r.Lines {
		if len(l.Providers) > 0 {
			hosts["registry.terraform.io"] = true
		}
	}
	for host := range hosts {
		r.Hosts = append(r.Hosts, host)
	}
	slices.Sort(r.Hosts)
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
		err = template.Must(template.New("report").Funcs(template.FuncMap{"string": text}).Parse(htmlReport)).Execute(&b, r)
	case ".md":
		err = texttemplate.Must(texttemplate.New("report").Funcs(texttemplate.FuncMap{"string": text, "cell": cell, "indent": indent}).Parse(mdReport)).Execute(&b, r)
	default:
		err = usage.Errorf("--report %s: the name must end in .html, .md or .json", name)
	}
	return b.Bytes(), err
}

func text(v json.RawMessage) string { return string(v) }

// cell keeps a text inside of its cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}

// indent makes a text a block of code, whatever is in it.
func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
