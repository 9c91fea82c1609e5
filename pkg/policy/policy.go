package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Language is what rules are written in, under its name in app folders.
type Language string

// All languages.
const (
	Kyverno Language = "kyverno" // YAML: ClusterPolicy, Policy, ValidatingPolicy, and their exceptions
	Rego    Language = "opa"     // package nuon or berth, with the rules deny, ask and warn
)

// Rules are the text of one file.
type Rules struct {
	// Name is the policy's, for people.
	Name     string   `json:"name"`
	Language Language `json:"engine"`
	// RegoV0 reads Rego as OPA before 1.0 did.
	RegoV0 bool   `json:"rego_v0,omitempty"`
	Text   string `json:"text"`
	// File says where the text stands, for errors; "" when nobody knows.
	File string `json:"file,omitempty"`
	// Type says what the rules look at, "" for every document.
	Type Type `json:"type,omitempty"`
	// Components are the names of the components that they are for; none, or "*", is all.
	Components []string `json:"components,omitempty"`
	// Side says whose rules they are, for documents that each side sees in its own way.
	Side Side `json:"side,omitempty"`
}

// Identity is what rules are told apart by, for digests: what they say and their names, and
// not where they stand.
func Identity(rules []Rules) [][]string {
	said := make([][]string, 0, len(rules))
	for _, r := range rules {
		said = append(said, []string{r.Name, string(r.Language), r.Text})
	}
	return said
}

// Side is who rules belong to.
type Side string

// The sides.
const (
	SideVendor   Side = "vendor"
	SideCustomer Side = "customer"
)

// Type says what a vendor's policy looks at, as app folders name it.
type Type string

// All types. Those that begin with runner_job are older names.
const (
	TypeContainerImage     Type = "container_image"
	TypeHelmChart          Type = "helm_chart"
	TypeKubernetesManifest Type = "kubernetes_manifest"
	TypeTerraformModule    Type = "terraform_module"
	TypeKubernetesCluster  Type = "kubernetes_cluster" // every object, no matter what brings it
	TypeSandbox            Type = "sandbox"
	TypeTerraformJob       Type = "runner_job_terraform_deploy"
	TypeHelmJob            Type = "runner_job_helm_deploy"
	TypeActionJob          Type = "runner_job_action_workflow"
)

// AllComponents stands for every component.
const AllComponents = "*"

// Form is what a document is.
type Form string

// All forms, and how rules see the body of each. Kyverno's Kubernetes mode sees objects
// only. Its JSON mode and Rego see the others, Rego as the field of input that is named here.
const (
	FormObject  Form = "object"         // a Kubernetes object: input.review {kind, object, oldObject, operation}
	FormPlan    Form = "terraform_plan" // what `terraform show -json` says of a plan: input.plan
	FormImage   Form = "image"          // Image: its fields are input's own, image, tag and metadata
	FormScript  Form = "script"         // Script: input.script
	FormRelease Form = "release"        // Release: input.release
	FormPulumi  Form = "pulumi_preview" // Pulumi: input.preview
	FormChanges Form = "changes"        // Changes, what a plugin shows of its plan: input.changes
	// FormFootprint is what a plan newly needs and exposes, as package footprint computes it
	// from the other documents: input.footprint. Only rules whose text says footprint look
	// at it.
	FormFootprint Form = "footprint"
)

// Operation is what happens to an object. A replacement is a delete and a create: two
// documents.
type Operation string

// All operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Document is one thing that rules are held against. It may hold secrets: it never leaves
// the customer's side.
type Document struct {
	Form Form `json:"form"`
	// Of is the kind of job that brings it, as package jobspec names it; Sandbox is set for
	// that of the sandbox.
	Of      string `json:"of"`
	Sandbox bool   `json:"sandbox,omitempty"`
	// Component is the component's name, or the action's.
	Component string `json:"component,omitempty"`
	// Side is set where the sides see different things: of an image each knows other keys.
	// Only rules of that side look at it.
	Side Side `json:"side,omitempty"`
	// Name is what people call it: "Deployment shop/web", "plan of database".
	Name      string    `json:"name"`
	Operation Operation `json:"operation,omitempty"` // of an object
	// Body is what will be, null after a delete; Old what is, null before a create.
	Body json.RawMessage `json:"body,omitempty"`
	Old  json.RawMessage `json:"old,omitempty"`
}

// Image is the body of FormImage.
type Image struct {
	Image    string        `json:"image"` // where it comes from, without tag and digest
	Tag      string        `json:"tag"`
	Digest   string        `json:"digest"`
	Metadata ImageMetadata `json:"metadata"`
}

// ImageMetadata is what is known of an image besides its layers.
type ImageMetadata struct {
	// Signed says that a signature which a given key verifies hangs on the image.
	Signed bool `json:"signed"`
	// SBOM is the first bill of materials among Attestations (SPDX or CycloneDX), null for none.
	SBOM json.RawMessage `json:"sbom,omitempty"`
	// Attestations are the statements (in-toto) about the image and its platforms, in the
	// order of the registry: those that a given key signed. A vendor who gives no key sees
	// all, and trusts none of them.
	Attestations []json.RawMessage `json:"attestations,omitempty"`
}

// Script is the body of FormScript.
type Script struct {
	Action string `json:"action"`
	Step   string `json:"step"`
	// Text is what runs: a command line, or the script.
	Text string `json:"text"`
	// AdHoc: it is part of no release. Accepted: the customer's side has accepted it before.
	AdHoc    bool `json:"ad_hoc"`
	Accepted bool `json:"accepted"`
	// Role is the customer's role that it runs with, "" for none.
	Role string   `json:"role"`
	Env  []string `json:"env"` // names only
}

// Release is the body of FormRelease: what accepting a release brings.
type Release struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
	// Forgets: all scripts that were accepted are forgotten; the release brings nothing.
	Forgets bool `json:"forgets"`
	// Artifacts are what components and the sandbox are made of, all of the release.
	Artifacts []ReleaseArtifact `json:"artifacts"`
	// Scripts are those that were not accepted before, with their texts.
	Scripts []ReleaseScript `json:"scripts"`
	// Plugins name the plugins that were not accepted before, each with its component.
	Plugins []string `json:"plugins"`
	// Grown are those of them that may more than the version accepted before.
	Grown []GrownPlugin `json:"grown"`
	// Roles are those that the customer may switch on, as the app writes them.
	Roles []string `json:"roles"`
	// Secrets are the names of the customer's secrets that the release reads.
	Secrets []string `json:"secrets"`
}

// ReleaseArtifact is the build of one component, or of the sandbox.
type ReleaseArtifact struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// GrownPlugin is a plugin with the permissions that its accepted version had not.
type GrownPlugin struct {
	Plugin      string   `json:"plugin"`
	Permissions []string `json:"permissions"`
}

// ReleaseScript is a script that a release brings.
type ReleaseScript struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	// Texts are those of its steps.
	Texts []string `json:"texts"`
	// Unattended: it may change something by the schedule, without a decision each time.
	Unattended bool `json:"unattended"`
	// ReadOnly marks a check.
	ReadOnly bool   `json:"read_only"`
	Role     string `json:"role"`
}

// Pulumi is the body of FormPulumi: the steps of `pulumi preview --json` that do something,
// as Pulumi gives them (op, urn, oldState, newState, …). Secrets are "[secret]" there.
type Pulumi struct {
	Steps []json.RawMessage `json:"steps"`
}

// Changes is the body of FormChanges.
type Changes struct {
	Type    string   `json:"type"` // the plugin's component type
	Changes []Change `json:"changes"`
}

// Change is what happens to one thing.
type Change struct {
	Address string        `json:"address"`
	Action  string        `json:"action"` // create, update, replace, delete, or the plugin's own word
	Reason  string        `json:"reason,omitempty"`
	Fields  []ChangeField `json:"fields,omitempty"`
}

// ChangeField is one field that changes, in the words of who shows it.
type ChangeField struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Case is what a plan leaves to be judged, as the file PinnedCase of what it pins: its
// documents, and the vendor's rules as they are once their templates are rendered.
type Case struct {
	Rules     []Rules    `json:"rules,omitempty"`
	Documents []Document `json:"documents"`
}

// PinnedCase is the file of a Case below pinned/.
const PinnedCase = "documents.json"

// Unchanged says whether a document is of something that stays as it is.
func (d Document) Unchanged() bool {
	return d.Form == FormObject && d.Operation == Update && string(d.Body) == string(d.Old)
}

// Request is what the engine is asked.
type Request struct {
	Rules     []Rules    `json:"rules"`
	Documents []Document `json:"documents"`
	// Namespaces are the labels of namespaces, by name, where they are known.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
}

// Applies says whether rules look at a document.
func (r Rules) Applies(d Document) bool {
	if d.Side != "" && d.Side != r.Side {
		return false
	}
	if d.Form == FormFootprint && !strings.Contains(r.Text, string(FormFootprint)) {
		return false // rules for plans and objects would not expect it
	}
	if len(r.Components) > 0 && !slices.Contains(r.Components, AllComponents) && (d.Sandbox || !slices.Contains(r.Components, d.Component)) {
		return false
	}
	ofCluster := d.Form == FormObject || d.Form == FormFootprint && (d.Of == string(TypeHelmChart) || d.Of == string(TypeKubernetesManifest))
	ofTerraform := d.Form == FormPlan || d.Form == FormFootprint && d.Of == string(TypeTerraformModule)
	switch r.Type {
	case "":
		return true
	case TypeContainerImage:
		return d.Form == FormImage
	case TypeHelmChart, TypeHelmJob:
		return ofCluster && d.Of == string(TypeHelmChart)
	case TypeKubernetesManifest:
		return ofCluster && d.Of == string(TypeKubernetesManifest)
	case TypeKubernetesCluster:
		return ofCluster
	case TypeTerraformModule, TypeTerraformJob:
		return ofTerraform && !d.Sandbox
	case TypeSandbox:
		return ofTerraform && d.Sandbox
	case TypeActionJob:
		return d.Form == FormScript
	}
	return false
}

// Result is what rules say of a document.
type Result string

// All results. Unknown is what the engine cannot answer where it runs, such as a rule that
// asks a cluster.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	Warning Result = "warn"
	Error   Result = "error"
	Skip    Result = "skip"
	Unknown Result = "unknown"
)

// Answer is what follows for a change, worse ones are higher.
type Answer string

// All answers, by weight.
const (
	Allow Answer = "allow"
	Warn  Answer = "warn"
	Ask   Answer = "ask" // the customer is asked
	Deny  Answer = "deny"
)

var weight = map[Answer]int{Allow: 0, Warn: 1, Ask: 2, Deny: 3}

// Valid says whether a is one of the answers.
func (a Answer) Valid() bool {
	_, known := weight[a]
	return known
}

// Worse returns the heavier of two answers. One that is not known is the heaviest.
func Worse(a, b Answer) Answer {
	heavy := func(x Answer) int {
		if w, known := weight[x]; known {
			return w
		}
		return weight[Deny]
	}
	if heavy(b) > heavy(a) {
		return b
	}
	return a
}

// Verdict is what one rule says of one document.
type Verdict struct {
	// Policy is Rules.Name; Rule names the rule in it, "" where it has only one.
	Policy string `json:"policy"`
	Rule   string `json:"rule,omitempty"`
	// Document is Document.Name, Component its component.
	Document  string `json:"document"`
	Component string `json:"component,omitempty"`
	Result    Result `json:"result"`
	// On is what a failure means, Deny where it is not set.
	On Answer `json:"on,omitempty"`
	// Message is for people. It may quote the document: the runner takes secrets out.
	Message  string `json:"message,omitempty"`
	Severity string `json:"severity,omitempty"` // of the policy: critical, high, medium, low, info
}

// Answer is what follows from a verdict. doubt is what follows from one that is neither yes
// nor no.
func (v Verdict) Answer(doubt Answer) Answer {
	switch v.Result {
	case Pass, Skip:
		return Allow
	case Warning:
		return Warn
	case Fail:
		if !v.On.Valid() {
			return Deny
		}
		return v.On
	}
	return doubt
}

// Decide is what follows from all verdicts together: the worst of them.
func Decide(verdicts []Verdict, doubt Answer) Answer {
	worst := Allow
	for _, v := range verdicts {
		worst = Worse(worst, v.Answer(doubt))
	}
	return worst
}

// Against are the verdicts that stand against a change, the worst first and otherwise in a
// stable order.
func Against(verdicts []Verdict, doubt Answer) []Verdict {
	var out []Verdict
	for _, v := range verdicts {
		if v.Answer(doubt) != Allow {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b Verdict) int {
		return cmp.Or(
			cmp.Compare(weight[b.Answer(doubt)], weight[a.Answer(doubt)]),
			strings.Compare(a.Policy, b.Policy), strings.Compare(a.Document, b.Document), strings.Compare(a.Rule, b.Rule))
	})
	return out
}

// Judgement is what a runner says of a plan: what both sides' rules gave.
type Judgement struct {
	// Engine is Reply.Engine, "" when no rules looked at the plan.
	Engine string `json:"engine,omitempty"`
	// Vendor are the verdicts of the vendor's policies. The control plane enforces them:
	// doubt denies.
	Vendor []Verdict `json:"vendor,omitempty"`
	// Guardrails are those of the customer's, and Answer is what the runner makes of them:
	// doubt asks. With Deny it refuses the change.
	Guardrails []Verdict `json:"guardrails,omitempty"`
	Answer     Answer    `json:"answer,omitempty"`
	// Development: the runner has no walls between engines and itself, so its guardrails
	// only warn.
	Development bool `json:"development,omitempty"`
}

// maxDenials is how many denials a sentence names.
const maxDenials = 3

// Denies says for people which of the vendor's policies deny the plan; "" when none does.
// What they cannot tell is a denial: a person overrides it, or changes the policy.
func (j Judgement) Denies() string {
	var said []string
	denials := 0
	for _, v := range Against(j.Vendor, Deny) {
		if v.Answer(Deny) != Deny {
			continue
		}
		if denials++; denials <= maxDenials {
			said = append(said, v.String())
		}
	}
	if denials == 0 {
		return ""
	}
	text := "denied by policy: " + strings.Join(said, "; ")
	if denials > maxDenials {
		text += fmt.Sprintf("; and %d more", denials-maxDenials)
	}
	return text
}

// String is a verdict in one line.
func (v Verdict) String() string {
	rule := v.Policy
	if v.Rule != "" {
		rule += "/" + v.Rule
	}
	text := fmt.Sprintf("%s %s: %s", v.Document, v.Result, rule)
	if v.Message != "" {
		text += ": " + v.Message
	}
	return text
}
