package rehearse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestJudgeBuild(t *testing.T) {
	t.Parallel()
	repo := &ctlapi.BuildSource{Repo: new("acme/app")}
	for text, want := range map[string]Line{
		"repository acme/app cannot be reached: no such host; trying again":  {Verdict: NotPlanned, Why: "source acme/app unreachable"},
		"repository acme/app does not exist, or is not public; correct repo": {Verdict: NotPlanned, Why: "source acme/app unreachable"},
		"fetch chart: dial tcp 192.0.2.1:443: i/o timeout":                   {Verdict: NotPlanned, Why: "source acme/app unreachable"},
		`module "net" (main.tf:3) is of git::https://git.example.com/team/net.git//vpc, which needs credentials: the server answers 401 without; ask`: {
			Verdict: NotPlanned, Why: "source git::https://git.example.com/team/net.git//vpc needs credentials"},
		`module "net" (main.tf:3) is of git::https://git.example.com/net.git, whose server refuses these credentials (401, the entry https://git.example.com); ask`: {
			Verdict: NotPlanned, Why: "source git::https://git.example.com/net.git needs credentials"},
		`module "net" (main.tf:3) is of modules.example.com/acme/net/aws, which cannot be fetched: modules.example.com cannot be reached: dial tcp: no such host; check`: {
			Verdict: NotPlanned, Why: "source modules.example.com/acme/net/aws unreachable"},
		"image acme.example/mirror is in a registry of AWS, for which builder's BERTH_SOURCE_CREDENTIALS has no entry with the helper aws_ecr": {Verdict: NotPlanned, Why: "source acme/app needs credentials"},
		"this Build Runner cannot build images: there is no buildctl; install it":                                                              {Verdict: NotPlanned, Why: "tool buildctl is not on this machine"},
		`exec: "go": executable file not found in $PATH`:                                                                                       {Verdict: NotPlanned, Why: "tool go is not on this machine"},
		`commit 1 has no directory "x"; correct directory in components/app.toml`:                                                              {Verdict: Failed, Why: `it cannot be built: commit 1 has no directory "x"; correct directory in components/app.toml`},
	} {
		got := judgeBuild(ctlapi.ConfigItem{Component: "app", Source: repo, BuildError: &text})
		got.Plan = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// What Berth cannot take is no mistake of the app.
func TestJudgeBuildOfWhatBerthDoesNotTake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		repo, text string
		verdict    Verdict
		why        string
	}{
		{"git@github.com:acme/x.git", `this is not an address of a repository that Berth can use: write "owner/name" or an https URL`, NotPlanned, "source git@github.com:acme/x.git is fetched over SSH, and builder speaks HTTPS only"},
		{"ssh://git@git.example.com/x", `this is not an address of a repository that Berth can use: write "owner/name" or an https URL`, NotPlanned, "source ssh://git@git.example.com/x is fetched over SSH, and builder speaks HTTPS only"},
		{"acme", "this is not an address of a repository that Berth can use", Failed, "it cannot be built: this is not an address of a repository that Berth can use"},
		{"acme/app", "src: package.json names dependencies, and there is neither a package-lock.json nor a node_modules: run npm install", NotPlanned, "builder gets the packages of a program in Node.js by a package-lock.json only, and there is none"},
	} {
		got := judgeBuild(ctlapi.ConfigItem{Component: "app", Source: &ctlapi.BuildSource{Repo: &tt.repo}, BuildError: &tt.text})
		if got.Verdict != tt.verdict || got.Why != tt.why {
			t.Errorf("%s: %s, %s; want %s, %s", tt.text, got.Verdict, got.Why, tt.verdict, tt.why)
		}
	}
}

func TestJudgeFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failure failure
		verdict Verdict
		why     string
	}{
		{failure{Error: "exit code 3"}, Failed, "exit code 3"},
		{failure{Error: "exit code 3", Reads: []string{"a", "b", "c", "d"}}, NotPlanned, "it needs real values of a, b, c; with made-up ones: exit code 3"},
		{failure{Error: "sh: 1: psql: not found"}, NotPlanned, "tool psql is not on this machine"},
		{failure{Error: "pulumi is not on this machine: there is none on the runner's PATH", Reads: []string{"a"}}, NotPlanned, "tool pulumi is not on this machine"},
		{failure{Error: "queue: the tool is missing: no opentofu 1.12.6 is on this runner, which has 1.11.0, 1.9.2; downloads are forbidden"}, NotPlanned, "tool opentofu 1.12.6 is not on this machine"},
		{failure{Error: "queue: the tool is missing: no opentofu ~> 1.12, < 2 is on this runner, and no other"}, NotPlanned, "tool opentofu ~> 1.12, < 2 is not on this machine"},
		{failure{Error: "queue: the tool is missing: no opentofu is on this runner, and no other; downloads are forbidden"}, NotPlanned, "tool opentofu is not on this machine"},
		{failure{Error: "queue: opentofu 1.12.6 could not be fetched: Get: dial tcp: connection refused"}, NotPlanned, "tool opentofu 1.12.6 is not on this machine"},
		{failure{Error: "pulumi preview of component queue: error: no resource plugin 'pulumi-resource-aws' found in the workspace"}, NotPlanned, "provider aws of Pulumi unreachable"},
		{failure{Error: `no credentials for Kubernetes context "west": the outputs of component cluster have none`}, NotPlanned, `no credentials for Kubernetes context "west": the outputs of component cluster have none`},
		{failure{Error: "this runner has no cluster to work on"}, NotPlanned, "there is no cluster"},
		{failure{Error: "step \"a\" ended with exit code 127"}, NotPlanned, "a tool that its script runs is not on this machine: step \"a\" ended with exit code 127"},
		{failure{Error: "dial tcp: lookup shop.example.com: no such host"}, NotPlanned, "what it calls cannot be reached: dial tcp: lookup shop.example.com: no such host"},
		{failure{Error: strings.Repeat("ä", 400)}, Failed, strings.Repeat("ä", mostWhy-1) + "…"},
	} {
		if verdict, why := judgeFailure(tt.failure); verdict != tt.verdict || why != tt.why {
			t.Errorf("%+v: %s, %s; want %s, %s", tt.failure, verdict, why, tt.verdict, tt.why)
		}
	}
}

func TestBuildsOfAConfig(t *testing.T) {
	t.Parallel()
	item := func(state ctlapi.BuildState, err string) ctlapi.ConfigItem {
		return ctlapi.ConfigItem{BuildState: state, BuildError: &err}
	}
	got := sort([]ctlapi.ConfigItem{
		item(ctlapi.BuildStateSucceeded, ""), item(ctlapi.BuildStateFailed, "x"), item(ctlapi.BuildStateQueued, "x; trying again"),
		item(ctlapi.BuildStateQueued, "waiting for the Build Runner to start"), item(ctlapi.BuildStateRunning, ""),
	})
	if got.open != 2 || len(got.noted) != 1 || len(got.failed) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestImagesIn(t *testing.T) {
	t.Parallel()
	plan := ctlapi.PlanSummary{Text: "spec:\n  containers:\n    - image: \"a.example.com/web:1\"\n      name: web\n    - name: b\n      image: redis@sha256:12\n  imagePullPolicy: Always\n"}
	if diff := cmp.Diff([]string{"a.example.com/web:1", "redis@sha256:12"}, imagesIn(plan)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an app says cannot break out of the picture.
func TestPicture(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Components: []appconfig.Component{
		{Name: "<script>alert(1)</script>", Type: "a\"b"}, {Name: "web", Type: appconfig.TypeHelmChart, Dependencies: []string{"<script>alert(1)</script>"}},
	}}
	g, _ := graph.New(app)
	got := string(picture(g, app, map[string]string{"web": `real" onload="x`}))
	if strings.Contains(got, "<script>") || strings.Contains(got, `" onload`) || strings.Count(got, "<rect") != 2 || strings.Count(got, "<path") != 1 {
		t.Errorf("the picture is\n%s", got)
	}
	if picture(&graph.Graph{}, app, nil) != "" {
		t.Error("there is a picture of nothing")
	}
}
