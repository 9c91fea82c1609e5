package egress

import (
	"net/http"
	"strings"
)

// Class is a kind of bytes that leave the agent.
type Class struct {
	Name string
	What string // for people
	// Hot: many alike; they are counted for a while instead of one by one.
	Hot bool
	// Off says what happens when the customer switches the class off, "" when that
	// is not possible: Why says why.
	Off string
	Why string
}

// Names of the classes that makers of bytes ask about.
const (
	LogBodies    = "log-bodies"
	Metrics      = "metrics"
	CheckOutputs = "check-outputs"
	PlanDetails  = "plan-details"
	Progress     = "progress"
)

// Names of classes of requests that are not to runner-api or log-ingest.
const (
	RegistryPull = "registry-pull"
	RegistryPush = "registry-push"
	Tools        = "tool-downloads"
	Clouds       = "cloud-api"
)

const needed = "without it the vendor's control plane does not know this runner, and no work comes"

// Classes are all of them, in the order in which they are shown.
func Classes() []Class {
	return []Class{
		{Name: LogBodies, What: "lines that engines write: logs of jobs, without known secrets", Hot: true,
			Off: "the log says that lines are withheld; they are kept, redacted, in egress/withheld of the data directory"},
		{Name: PlanDetails, What: "what a plan would change: objects, fields, the tool's text; part of plans, and of what looks for drift find",
			Off: "the vendor sees counts and the effect digest, and approves by these; berth-runner show CHANGE still shows all"},
		{Name: Metrics, What: "numbers that actions and checks measure, part of results and runs; processor, memory, disk and durations of this runner, every 5 minutes", Hot: true,
			Off: "results and runs carry no numbers, and say so; this runner's own numbers are not sent, nor kept for later"},
		{Name: CheckOutputs, What: "outputs and error texts of checks and scheduled runs; part of runs",
			Off: "runs carry their verdict and exit code only"},
		{Name: Progress, What: "what an engine is working on now; part of leases",
			Off: "the vendor sees that a job runs, not what it does"},
		{Name: "sessions", What: "versions, machine and isolation of this runner, and the head of its chain", Why: needed},
		{Name: "enrolment", What: "the single-use secret and the public keys of this runner", Why: needed},
		{Name: "stack-report", What: "what the stack that made this runner reports: account, region, outputs", Why: needed},
		{Name: "claims", What: "the question for work, and which kinds of it this runner takes", Hot: true, Why: needed},
		{Name: "leases", What: "which jobs run here", Hot: true, Why: "without it running jobs count as lost"},
		{Name: "settings", What: "the question for settings: the version that is here", Hot: true, Why: "settings expire after 7 days, and changes stop"},
		{Name: "reads", What: "the question for what the control plane keeps sealed of this install; no body", Hot: true, Why: "jobs need their states"},
		{Name: "plans", What: "effect digest, counts, verdicts of rules and guardrails, readable summary", Why: "without a plan nothing can be approved"},
		{Name: "results", What: "how a job ended, its error, sealed outputs", Why: "without a result the resource stays locked"},
		{Name: "runs", What: "how a check, a scheduled run or a remediation ended", Why: "the health of the install is made of them; see check-outputs and metrics for what can be left out"},
		{Name: "states", What: "Terraform states and outputs, sealed to your keys, with the summary that vendor_sees_state allows", Why: "they would be on this machine only; --vendor-sees-state limits the summary"},
		{Name: "locks", What: "locks of Terraform states", Why: "two jobs could write one state"},
		{Name: "chain", What: "records of the install's chain", Why: "the copy is how a cut chain is found; sever stops everything"},
		{Name: "consents", What: "how changes stand with your side: who agreed, reasons", Why: "the vendor would not know what it waits for"},
		{Name: "roles", What: "which roles are on, since when, by whom", Why: "the vendor would order what cannot run"},
		{Name: "secrets", What: "names and versions of the secrets that you keep, with a keyed digest; no values", Why: "the vendor would order what cannot run"},
		{Name: "registry-tokens", What: "the question for a token for the vendor's registry", Hot: true, Why: "nothing could be fetched"},
		{Name: "log-ends", What: "number of lines of a log, and their hash", Why: "the log would stay open"},
		{Name: RegistryPull, What: "which artifacts are fetched, by digest; no body", Hot: true, Why: "nothing could be deployed"},
		{Name: RegistryPush, What: "artifacts that a Build Runner built", Why: "an Install Runner pushes nothing; a Build Runner is for that"},
		{Name: Tools, What: "which versions of Terraform or OpenTofu are fetched; no body", Hot: true, Why: "--terraform-downloads forbid switches it off"},
		{Name: Clouds, What: "your cloud's own API: which cluster there is, a token for it", Hot: true, Why: "it is your account's; nothing of it goes to the vendor"},
	}
}

// Find returns the class of a name.
func Find(name string) (Class, bool) {
	for _, c := range Classes() {
		if c.Name == name {
			return c, true
		}
	}
	return Class{}, false
}

// route is a call, its class and the schema of its body.
type route struct{ method, path, class, schema string }

// routes are the calls of runner-api and log-ingest that an agent may make.
var routes = []route{
	{http.MethodPost, "/stacks/phone-home", "stack-report", "PhoneHome"},
	{http.MethodPost, "/enrol", "enrolment", "Enrolment"},
	{http.MethodPost, "/enrol/position", "enrolment", "EnrolmentPosition"},
	{http.MethodPost, "/sessions", "sessions", "SessionRequest"},
	{http.MethodPost, "/jobs/claim", "claims", "ClaimRequest"},
	{http.MethodPost, "/leases/renew", "leases", "RenewRequest"},
	{http.MethodPut, "/jobs/{job}/plan", "plans", "Plan"},
	{http.MethodPut, "/jobs/{job}/result", "results", "ResultReport"},
	{http.MethodGet, "/settings", "settings", ""},
	{http.MethodPut, "/runs/{run}", "runs", "Run"},
	{http.MethodPut, "/remediations/{remediation}", "runs", "Remediation"},
	{http.MethodPut, "/samples", Metrics, "Samples"},
	{http.MethodPut, "/secrets", "secrets", "SecretsReport"},
	{http.MethodPut, "/roles", "roles", "RolesReport"},
	{http.MethodPut, "/consents", "consents", "ConsentsReport"},
	{http.MethodGet, "/states/{resource}", "reads", ""},
	{http.MethodPut, "/states/{resource}", "states", "StateWrite"},
	{http.MethodGet, "/states/{resource}/lock", "reads", ""},
	{http.MethodPost, "/states/{resource}/lock", "locks", "LockRequest"},
	{http.MethodDelete, "/states/{resource}/lock", "locks", "UnlockRequest"},
	{http.MethodPost, "/registry-token", "registry-tokens", "RegistryTokenRequest"},
	{http.MethodPost, "/chain", "chain", "ChainAppend"},
	{http.MethodGet, "/chain", "reads", ""},
	{http.MethodGet, "/chain/head", "reads", ""},
	{http.MethodGet, "/sealed", "reads", ""},
	{http.MethodGet, "/sealed/{resource}", "reads", ""},
	{http.MethodPut, "/sealed/{resource}", "states", "SealedWrite"},
	{http.MethodPost, "/streams/{stream}/records", LogBodies, "frames"},
	{http.MethodPost, "/streams/{stream}/finish", "log-ends", "Finish"},
}

// sort is what a request is.
type sort struct{ class, schema, about string }

// classify finds the class of a request to the control plane or its registry. The
// address of a service may have a path of its own, so calls are matched from the end;
// the longest counts.
func classify(req *http.Request) (found sort, ok bool) {
	path := splitPath(req.URL.EscapedPath())
	longest := 0
	for _, r := range routes {
		want := splitPath(r.path)
		if r.method != req.Method || len(want) > len(path) || len(want) <= longest {
			continue
		}
		if about, fits := fit(want, path[len(path)-len(want):]); fits {
			found, longest, ok = sort{r.class, schemaOf(r), about}, len(want), true
		}
	}
	if ok {
		return found, true
	}
	if strings.HasPrefix(req.URL.Path, "/v2/") {
		if req.Method == http.MethodGet || req.Method == http.MethodHead {
			return sort{RegistryPull, "oci-distribution/v1", ""}, true
		}
		return sort{RegistryPush, "oci-distribution/v1", ""}, true
	}
	return sort{}, false
}

func schemaOf(r route) string {
	service := "runner-api/v1"
	if strings.HasPrefix(r.path, "/streams/") {
		service = "log-ingest/v1"
	}
	if r.schema == "" {
		return service + " " + r.method + " " + r.path
	}
	return service + " " + r.schema
}

func splitPath(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// fit compares a path with one that has parameters; about is the last of these.
func fit(want, path []string) (about string, ok bool) {
	for i, part := range want {
		switch {
		case strings.HasPrefix(part, "{"):
			about = path[i]
		case part != path[i]:
			return "", false
		}
	}
	return about, true
}
