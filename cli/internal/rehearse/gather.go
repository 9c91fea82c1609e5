package rehearse

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/rehearsal"
)

// gather reads what came of all rounds; last is the workflow of the last one, nil
// when nothing could be built.
func (r *run) gather(ctx context.Context, last *ctlapi.Workflow) (Report, error) {
	report := Report{App: r.sync.App, Platform: ctlapi.RehearsalPlatform(rehearsal.PlatformOf(r.app)), Cluster: r.cluster, Spans: r.parts}
	if r.install != nil {
		install, err := r.client.Install(ctx, r.install.ID)
		if err != nil {
			return report, err
		}
		report.App, report.Install = install.App.Name, install.Name
		if install.Rehearsal != nil {
			report.Platform, report.Outputs = install.Rehearsal.Platform, install.Rehearsal.Outputs
		}
	}
	ended := map[stage.Part]string{} // why the rest was not tried
	if last != nil {
		if last.Release != nil {
			report.Release = last.Release.Number
		}
		for _, step := range last.Steps {
			if part, ok := partOf(step); ok {
				ended[part] = "the provision ended before it: its step is " + string(step.State)
			}
		}
	}
	for _, part := range r.order() {
		report.Lines = append(report.Lines, r.line(part, ended[part]))
	}
	values := madeUpInputs(r.app)
	others, err := r.inventory(ctx, last, report.Lines)
	if err != nil {
		return report, err
	}
	report.Lines = append(report.Lines, others...)
	report.count()
	var named []string
	for _, o := range report.Outputs {
		if o.Source != ctlapi.RehearsalOutputSourceMadeUp {
			named = append(named, o.Path)
		}
	}
	report.Unread, report.Undeclared = outputs(r.app, named)
	report.Findings = []string{}
	for _, d := range r.said {
		report.Findings = append(report.Findings, d.String())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, given := r.inputs[name]; !given {
			report.Inputs = append(report.Inputs, Input{name, values[name]})
		}
	}
	for _, s := range r.app.Secrets {
		report.Secrets = append(report.Secrets, s.Name)
	}
	if r.own {
		report.App = strings.TrimSuffix(report.App, suffix)
	}
	report.describe(r.app)
	report.Seconds = r.Now().Sub(r.beganAt).Seconds()
	return report, nil
}

// inventory gives the lines of what is neither the sandbox nor a component nor an
// action.
func (r *run) inventory(ctx context.Context, last *ctlapi.Workflow, lines []Line) ([]Line, error) {
	v := inventory{
		app: r.app, changes: r.changes, broken: r.broken, lost: r.lost, given: r.inputs, madeUp: madeUpInputs(r.app),
		fired: map[string]bool{}, verdict: map[stage.Part]Verdict{}, now: r.Now(),
	}
	for _, l := range lines {
		v.verdict[stage.Part(strings.TrimSuffix(l.Kind+"/"+l.Name, "/"))] = l.Verdict
	}
	if last != nil {
		for _, step := range last.Steps {
			v.fired[step.Name] = step.State == ctlapi.StepStateSucceeded
		}
	}
	if r.install != nil {
		resp, err := r.client.GetStateWithResponse(ctx, r.install.ID, &ctlapi.GetStateParams{})
		if err != nil {
			return nil, err
		}
		if resp.JSON200 != nil { // there is none before the first provision
			var tree map[string]any
			if err := json.Unmarshal(resp.JSON200.Tree, &tree); err != nil {
				return nil, err
			}
			delete(tree, "install") // NewState makes the alias again
			v.state = interpolate.NewState(tree)
		}
	}
	return v.others(), nil
}

// order are the parts of the app: the sandbox, the components in the order in which
// they are deployed, and the actions.
func (r *run) order() []stage.Part {
	var parts []stage.Part
	if r.app.Sandbox != nil {
		parts = append(parts, stage.Sandbox)
	}
	g, _ := graph.New(r.app)
	for _, name := range g.Order() {
		parts = append(parts, stage.Component(name))
	}
	for i := range r.app.Actions {
		parts = append(parts, stage.Action(r.app.Actions[i].Name))
	}
	return parts
}

// line is what came of a part. ended is why its step did not come to anything, "" for
// a part that has none.
func (r *run) line(part stage.Part, ended string) Line {
	l, judged := r.judged[part]
	kind, name, _ := strings.Cut(string(part), "/")
	l.Kind, l.Name = kind, cmp.Or(name, kind)
	c, a := r.app.Component(name), r.app.Action(name)
	switch kind {
	case appconfig.BlockSandbox:
		l.Type = string(appconfig.TypeTerraformModule)
		if r.app.Sandbox.Type != "" && r.app.Sandbox.Type != appconfig.SandboxTypeTerraform {
			l.Type = r.app.Sandbox.Type
		}
		if src, ok := r.app.Sandbox.Source(); ok {
			l.Source = sourceName(src)
		}
	case appconfig.BlockComponent:
		l.Type = string(c.Type)
		if src, ok := c.Source(); ok {
			l.Source = sourceName(src)
		}
	}
	switch {
	case judged:
	case r.changes.StandIns[part] != "":
		l.Verdict, l.Why = NotPlanned, r.changes.StandIns[part]
	case kind == appconfig.BlockAction && ended == "":
		l.Verdict, l.Why = NotPlanned, "a provision does not run it: "+triggersOf(a)
	default:
		l.Verdict, l.Why = NotPlanned, cmp.Or(ended, "the rehearsal ended before it")
	}
	return l
}

// triggersOf says what runs an action.
func triggersOf(a *appconfig.Action) string {
	var names []string
	for _, t := range a.Triggers {
		if name := string(t.Type); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "it has no trigger"
	}
	return "it runs on " + strings.Join(names, ", ")
}

func sourceName(src appconfig.Source) string {
	switch {
	case src.Kind == appconfig.SourceImage && !src.Range && src.Ref != "":
		return src.Repo + ":" + src.Ref
	case src.Kind == appconfig.SourceLocal || src.Kind == appconfig.SourceText:
		return ""
	case src.Directory != "." && src.Directory != "":
		return src.Repo + "//" + src.Directory
	}
	return src.Repo
}

// count adds the lines up.
func (r *Report) count() {
	r.Totals, r.Reasons = map[Verdict]int{Real: 0, Mocked: 0, NotPlanned: 0, Failed: 0}, []Reason{}
	r.Kinds = map[string]map[Verdict]int{}
	for _, l := range r.Lines {
		r.Totals[l.Verdict]++
		if r.Kinds[l.Kind] == nil {
			r.Kinds[l.Kind] = map[Verdict]int{}
		}
		r.Kinds[l.Kind][l.Verdict]++
		if l.Verdict == Real {
			continue
		}
		at := slices.IndexFunc(r.Reasons, func(known Reason) bool { return known.Verdict == l.Verdict && known.Why == l.Why })
		if at < 0 {
			r.Reasons = append(r.Reasons, Reason{Verdict: l.Verdict, Why: l.Why})
			at = len(r.Reasons) - 1
		}
		r.Reasons[at].Count++
	}
	slices.SortStableFunc(r.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(slices.Index(verdicts, b.Verdict), slices.Index(verdicts, a.Verdict)), cmp.Compare(b.Count, a.Count))
	})
}

// describe adds what the app folder and the plans say.
func (r *Report) describe(app *appconfig.App) {
	g, _ := graph.New(app)
	r.Graph = g.Tree()
	how := map[string]string{}
	for _, l := range r.Lines {
		if l.Kind == appconfig.BlockComponent {
			how[l.Name] = class(l.Verdict)
		}
	}
	r.picture = picture(g, app, how)
	hosts := map[string]map[string]bool{}
	put := func(host, what string) {
		if host == "" {
			return
		}
		if hosts[host] == nil {
			hosts[host] = map[string]bool{}
		}
		hosts[host][what] = true
	}
	images := map[string]bool{}
	for _, src := range appconfig.Sources(app) {
		name := cmp.Or(src.Name, src.Block)
		switch src.Kind {
		case appconfig.SourceImage:
			images[sourceName(src)] = true
			put(hostOfImage(src.Repo), "image of "+name)
		case appconfig.SourceChart:
			put(hostOf(src.Repo), "chart of "+name)
		case appconfig.SourceOCI:
			put(hostOfImage(src.Repo), "plugin of "+name)
		case appconfig.SourceGit:
			put(hostOf(src.Repo), "source of "+name)
		}
	}
	for _, l := range r.Lines {
		for _, image := range l.Images {
			images[image] = true
			put(hostOfImage(image), "images that "+l.Name+" runs")
		}
		for _, provider := range l.Providers {
			put(registryOf(provider), "Terraform providers")
		}
	}
	r.Images, r.Hosts = append([]string{}, slices.Sorted(maps.Keys(images))...), []Host{}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		r.Hosts = append(r.Hosts, Host{name, slices.Sorted(maps.Keys(hosts[name]))})
	}
}

// publicRegistry is where providers without a host are from.
const publicRegistry = "registry.terraform.io"

func registryOf(provider string) string {
	if strings.Count(provider, "/") > 1 {
		host, _, _ := strings.Cut(provider, "/")
		return host
	}
	return publicRegistry
}

// hostOfImage is the registry of an image.
func hostOfImage(image string) string {
	host, _, slash := strings.Cut(image, "/")
	if !slash || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io"
	}
	return host
}

// imageOf is how objects of Kubernetes name an image, in YAML and in fields.
var imageOf = regexp.MustCompile(`(?m)^[\s+~-]*(?:- )?"?image"?:\s*"?([^\s"',{}]+)`)

// imagesIn are the images that a plan of a chart or a manifest names.
func imagesIn(p ctlapi.PlanSummary) []string {
	found := map[string]bool{}
	for _, m := range imageOf.FindAllStringSubmatch(p.Text, -1) {
		found[m[1]] = true
	}
	for _, o := range p.Objects {
		for _, f := range o.Fields {
			if strings.HasSuffix(f.Path, ".image") || f.Path == "image" {
				if value := strings.Trim(f.After, `"`); value != "" && !strings.ContainsAny(value, " (<") {
					found[value] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
