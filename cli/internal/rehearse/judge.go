package rehearse

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
)

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
		if first, _, _ := strings.Cut(p.Text, "\n"); strings.HasPrefix(first, jobspec.PlannedWith) {
			l.Why = strings.ToLower(first[:1]) + strings.TrimSuffix(first[1:], ".")
		}
		if r := p.Rehearsed; r != nil {
			l.Verdict, l.Why, l.Providers = Mocked, r.Why, r.Providers
			if r.How == ctlapi.RehearsedHowNotPlanned {
				l.Verdict = NotPlanned
			}
			if r.How != ctlapi.RehearsedHowMocked {
				l.Create, l.Update, l.Delete = 0, 0, 0 // of the stand-in
			}
		}
		l.Images = imagesIn(*p)
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

// elsewhere is what builds and engines say of what they cannot get from others.
var elsewhere = regexp.MustCompile(`(?i)cannot be reached|cannot be downloaded|does not resolve|did not answer|does not answer|cannot be read now|its server answers|not public|without (other )?credentials|asks for credentials|` +
	`no such host|could not resolve|name resolution|connection refused|connection reset|network is unreachable|i/o timeout|timed out|timeout exceeded|deadline exceeded|dial tcp|no route to host|TLS handshake`)

// judgeBuild says of a build that failed whether its source could not be had, or the
// app is wrong.
func judgeBuild(item ctlapi.ConfigItem) Line {
	text := strings.TrimSuffix(api.Value(item.BuildError), tryingAgain)
	l := Line{Verdict: NotPlanned, Plan: text}
	switch {
	case strings.HasSuffix(api.Value(item.BuildError), tryingAgain) || elsewhere.MatchString(text):
		l.Why = "source " + sourceOf(item) + " unreachable"
	case closed.MatchString(text):
		l.Why = "source " + sourceOf(item) + " needs credentials"
	case missing(text) != "":
		l.Why = missing(text)
	case overSSH.MatchString(sourceOf(item)) && noAddress.MatchString(text):
		l.Why = "source " + sourceOf(item) + " is fetched over SSH, and builder speaks HTTPS only"
	case noLock.MatchString(text):
		l.Why = "builder gets the packages of a program in Node.js by a package-lock.json only, and there is none"
	default:
		l.Verdict, l.Why = Failed, "it cannot be built: "+short(text)
	}
	return l
}

// closed is what builder says of a private registry for which it has no key.
var closed = regexp.MustCompile(`BERTH_SOURCE_CREDENTIALS has no entry|needs credentials|refuses these credentials`)

// What builder says of sources and programs that are right and that it cannot take.
var (
	overSSH   = regexp.MustCompile(`^(?:ssh://|git@)[^\s:/]+[:/]`)
	noAddress = regexp.MustCompile(`is not an address of a repository that Berth can use`)
	noLock    = regexp.MustCompile(`neither a package-lock\.json nor a node_modules`)
)

// sourceOf names the source of a build, or of a module in it that could not be had.
func sourceOf(item ctlapi.ConfigItem) string {
	if m := moduleIn.FindStringSubmatch(api.Value(item.BuildError)); m != nil {
		return m[1]
	}
	if s := item.Source; s != nil && api.Value(s.Repo) != "" {
		return api.Value(s.Repo)
	}
	if named := addressIn.FindString(api.Value(item.BuildError)); named != "" {
		return strings.TrimRight(named, "/.") // a dependency of what is in the folder
	}
	return "of " + item.Component
}

var (
	moduleIn  = regexp.MustCompile(`module "[^"]+" \([^)]*\) is of (\S+), w(?:hich|hose)`)
	addressIn = regexp.MustCompile(`(?:https?|oci|git|ssh)://[^\s:,;"']+(?::\d+[^\s:,;"']*)?`)
)

// failure is a step that failed.
type failure struct {
	Part  stage.Part
	Error string
	// OnCluster: it was really deployed to a cluster.
	OnCluster bool
	Reads     []string // the made-up values that it reads
}

// Why a failure is none of the app.
var (
	missingTool = regexp.MustCompile(`(?i)([\w./-]+): (?:command not found|not found)|env: '?([\w./-]+)'?: No such file`)
	// What builds and engines say of the tools that they run themselves.
	ownTool = regexp.MustCompile(`there is no (buildctl|buildkitd|runc|rootlesskit|newuidmap|go|npm)\b|\b(pulumi) is not on this machine|exec: "([^"]+)": executable file not found`)
	// What the runner says of a Terraform or OpenTofu that it has not and cannot fetch.
	noTerraform  = regexp.MustCompile(`\bno ((?:terraform|opentofu)(?: [^;]+?)?) is on this runner|\b((?:terraform|opentofu) \S+) could not be fetched`)
	pulumiPlugin = regexp.MustCompile(`(?:no resource plugin|could not load plugin for|failed to load language plugin|no language plugin)\W+(?:pulumi-(?:resource|language)-)?([\w-]+)`)
	exit127      = regexp.MustCompile(`(?:exit(?:ed)?(?: with| code| status)*|code) 127\b`)
)

// missing says which tool an error misses, "" for none.
func missing(text string) string {
	if m := ownTool.FindStringSubmatch(text); m != nil {
		return "tool " + strings.Join(m[1:], "") + " is not on this machine"
	}
	if m := noTerraform.FindStringSubmatch(text); m != nil {
		return "tool " + m[1] + m[2] + " is not on this machine"
	}
	if m := pulumiPlugin.FindStringSubmatch(text); m != nil {
		return "provider " + m[1] + " of Pulumi unreachable"
	}
	return ""
}

// lacks are what a cluster says that has not what an app takes for granted, and how we
// say it; $1 is what it lacks.
var lacks = []struct {
	says *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`), "the cluster has no kind $1 of $2: nothing installed its CRD"},
	{regexp.MustCompile(`storageclass(?:\.storage\.k8s\.io)? "([^"]+)" not found`), "the cluster has no storage class $1"},
	{regexp.MustCompile(`no PriorityClass with name (\S+) was found`), "the cluster has no priority class $1"},
	{regexp.MustCompile(`RuntimeClass "([^"]+)" not found`), "the cluster has no runtime class $1"},
	{regexp.MustCompile(`(?:ImagePullBackOff|ErrImagePull)[^;]*?image "([^"]+)"`), "the cluster cannot get the image $1"},
	{regexp.MustCompile(`()(?:ImagePullBackOff|ErrImagePull)`), "the cluster cannot get an image of it"},
	{regexp.MustCompile(`nodes are available: ([^;.]+)`), "no node of the cluster takes its pods: $1"},
	{regexp.MustCompile(`namespaces "([^"]+)" not found`), "the cluster has no namespace $1"},
	{regexp.MustCompile(`()LoadBalancer`), "the cluster gives no load balancer"},
}

// anotherInstall is what an engine says of a namespace that is taken.
var anotherInstall = regexp.MustCompile(`of another install \([^)]+\) is in namespace`)

// lacking says what the cluster lacks for which a part failed; "" for nothing.
func lacking(text string) string {
	for _, l := range lacks {
		if m := l.says.FindStringSubmatchIndex(text); m != nil {
			return string(l.says.ExpandString(nil, l.why, text, m))
		}
	}
	return ""
}

// templateOf is how an error of a template begins: "components/db.toml: vars.size:1:4: ".
var templateOf = regexp.MustCompile(`^[^\s:]+: ([^\s:]+):\d+:\d+: `)

// mostNamed is how many made-up values a reason names.
const mostNamed = 3

// judgeFailure says whether what failed is the app's: it is not when it was tried with
// what is made up, or without what it needs.
func judgeFailure(f failure) (Verdict, string) {
	text := short(f.Error)
	switch {
	case f.OnCluster && lacking(f.Error) != "":
		return NotPlanned, lacking(f.Error)
	case anotherInstall.MatchString(f.Error):
		return NotPlanned, "another install of this machine has it in the same namespace: " + text
	case strings.Contains(f.Error, jobspec.ReadsCluster):
		return NotPlanned, "its chart " + jobspec.ReadsCluster + ": " + text
	case strings.Contains(f.Error, "this runner has no cluster"):
		return NotPlanned, "there is no cluster"
	case missing(f.Error) != "":
		return NotPlanned, missing(f.Error)
	case missingTool.MatchString(f.Error):
		m := missingTool.FindStringSubmatch(f.Error)
		return NotPlanned, "tool " + strings.Join(m[1:], "") + " is not on this machine"
	case strings.Contains(f.Error, "no credentials for Kubernetes context"):
		return NotPlanned, text
	case exit127.MatchString(f.Error):
		return NotPlanned, "a tool that its script runs is not on this machine: " + text
	case len(f.Reads) > 0:
		named := f.Reads[:min(len(f.Reads), mostNamed)]
		if key := templateOf.FindStringSubmatch(f.Error); key != nil {
			return NotPlanned, "the template of " + key[1] + " needs real values of " + strings.Join(named, ", ") + "; with made-up ones: " + text
		}
		return NotPlanned, "it needs real values of " + strings.Join(named, ", ") + "; with made-up ones: " + text
	case elsewhere.MatchString(f.Error):
		return NotPlanned, "what it calls cannot be reached: " + text
	}
	return Failed, text
}

// mostWhy is the longest reason, in characters. The whole text is with the plan.
const mostWhy = 240

// short is the beginning of a text, on one line.
func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > mostWhy {
		return string(runes[:mostWhy-1]) + "…"
	}
	return string(runes)
}
