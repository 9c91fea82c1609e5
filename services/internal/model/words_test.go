package model_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/services/internal/pgtest"
)

// columns have the words of each type. Channels are in no column, and the reasons
// to wait have no CHECK: they are empty while nothing waits.
var columns = map[string][]string{
	"WebhookState":       {"webhooks.state"},
	"DeliveryState":      {"webhook_deliveries.state"},
	"DeliveryCause":      {"webhook_deliveries.cause"},
	"Answer":             {"decisions.answer"},
	"BuildState":         {"builds.state"},
	"BulkOperation":      {"bulk_operations.operation"},
	"BulkOutcome":        {"bulk_items.outcome"},
	"ChangeKind":         {"changes.kind"},
	"ChangeState":        {"changes.state"},
	"Channel":            nil,
	"ConsentState":       {"consents.state"},
	"DeniedThen":         {"changes.denied_then"},
	"Ended":              {"workflows.ended"},
	"EnrolmentState":     {"enrolments.state"},
	"InstallState":       {"installs.state"},
	"OnFailure":          {"workflows.on_failure"},
	"JobState":           {"runner_jobs.state"},
	"LeaseState":         {"leases.state"},
	"MadeBy":             {"releases.made_by"},
	"RemediationState":   {"remediations.state"},
	"ResourceKind":       {"resources.kind", "components.kind"},
	"ResourceState":      {"resources.state"},
	"Rule":               {"decisions.rule"},
	"RunState":           {"action_runs.state"},
	"RunnerKind":         {"runners.kind"},
	"RunnerState":        {"runners.state"},
	"StackState":         {"stack_versions.state"},
	"StateKind":          {"tf_states.kind"},
	"StepState":          {"steps.state"},
	"StreamState":        {"log_streams.state"},
	"Verdict":            {"checks.verdict", "resources.health"},
	"WaitReason":         nil,
	"WorkflowState":      {"workflows.state"},
	"AlertClosedBecause": {"alerts.closed_because"},
	"AlertHold":          {"alerts.hold"},
	"AlertKind":          {"alerts.kind"},
	"AlertState":         {"alerts.state"},
}

// never are words that one of the columns of a type does not take.
var never = map[string][]string{
	"components.kind": {"stack", "secrets"}, // these are resources of an install only
	"resources.kind":  {"scripts"},          // they are built and released only
}

// untyped are columns with a CHECK whose words have no type here yet. Most are
// words of another package: of auth, of the app's config, of the runner.
var untyped = []string{
	"accounts.kind", "drift_episodes.class", "drift_episodes.closed_by", "grants.role", "install_recipients.reason", "install_roles.kind", "installs.approval_option", "installs.stack_kind",
	"keys.algorithm", "keys.purpose", "metric_series.kind", "policy_reports.answer", "policy_reports.side", "resources.drift", "runners.switch", "runners.trust",
	"tokens.kind", // only queries tell sessions of browsers from tokens
}

// The database takes just the words that Go knows, and Go has a type for every
// column whose words the database enumerates.
func TestWordsAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	allowed := checks(t, pgtest.New(t))
	words := constants(t)
	var typed []string
	for _, name := range slices.Sorted(maps.Keys(words)) {
		of, known := columns[name]
		if !known {
			t.Errorf("no column is named for model.%s", name)
		}
		for _, column := range of {
			typed = append(typed, column)
			want := slices.DeleteFunc(slices.Clone(words[name]), func(word string) bool { return slices.Contains(never[column], word) })
			if diff := cmp.Diff(allowed[column], want); diff != "" {
				t.Errorf("model.%s is not what the CHECK of %s has (-schema +Go):\n%s", name, column, diff)
			}
		}
	}
	for _, column := range slices.Sorted(maps.Keys(allowed)) {
		if !slices.Contains(typed, column) && !slices.Contains(untyped, column) {
			t.Errorf("%s has no type in package model", column)
		}
	}
}

// Every typed column has its type in the rows that sqlc makes.
func TestRowsCarryTheTypes(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../../sqlc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range columns {
		for _, column := range of {
			want := fmt.Sprintf(`{column: %q, go_type: {import: "%s", type: %s`, column, modelPath, name)
			if !strings.Contains(string(config), want+"}}") && !strings.Contains(string(config), want+", pointer: true}}") {
				t.Errorf("services/sqlc.yaml lacks %s", want)
			}
		}
	}
}

// machines are the sections of docs/state-machines.md that draw a type.
var machines = map[string]string{
	"Build":         "BuildState",
	"Workflow":      "WorkflowState",
	"Step":          "StepState",
	"Change":        "ChangeState",
	"Runner job":    "JobState",
	"Lease":         "LeaseState",
	"Resource":      "ResourceState",
	"Check":         "Verdict",
	"Remediation":   "RemediationState",
	"Install":       "InstallState",
	"Stack version": "StackState",
	"Runner":        "RunnerState",
	"Enrolment":     "EnrolmentState",
	"Consent":       "ConsentState",
	"Run":           "RunState",
	"Log stream":    "StreamState",
	"Webhook":       "WebhookState",
	"Delivery":      "DeliveryState",
	"Alert":         "AlertState",
}

var (
	// heading of a section, without who writes the states.
	heading = regexp.MustCompile(`(?m)^## ([A-Za-z ]+?) \(.*$`)
	// spelled is a word as pages write states.
	spelled = regexp.MustCompile(`[a-z_]+`)
	// reached is a state in a drawing: what an arrow leads to.
	reached = regexp.MustCompile(`▶ ([a-z_]+)`)
	// wait is the reason in the table of waits.
	wait = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
)

// The page draws every state, and no other.
func TestWordsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	drawn := slices.Collect(maps.Values(machines))
	for name := range columns {
		if strings.HasSuffix(name, "State") && !slices.Contains(drawn, name) {
			t.Errorf("no section of docs/state-machines.md is named for model.%s", name)
		}
	}
	page, err := os.ReadFile("../../../docs/state-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	words := constants(t)
	sections := map[string]string{}
	at := heading.FindAllStringSubmatchIndex(string(page), -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections[string(page[m[2]:m[3]])] = string(page[m[1]:end])
	}
	for title, name := range machines {
		text, ok := sections[title]
		if !ok {
			t.Errorf("docs/state-machines.md has no section %q", title)
			continue
		}
		said := spelled.FindAllString(text, -1)
		for _, word := range words[name] {
			if !slices.Contains(said, word) {
				t.Errorf("section %q does not name the state %s", title, word)
			}
		}
		for _, m := range reached.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(words[name], m[1]) {
				t.Errorf("section %q draws %s, which is no model.%s", title, m[1], name)
			}
		}
	}
	var reasons []string
	for _, m := range wait.FindAllStringSubmatch(sections["Step"], -1) {
		reasons = append(reasons, m[1])
	}
	slices.Sort(reasons)
	if diff := cmp.Diff(words["WaitReason"], reasons); diff != "" {
		t.Errorf("the table of waits is not model.WaitReason (-Go +page):\n%s", diff)
	}
}

// constants are the words of each type of the package, sorted.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil {
				return true
			}
			name := spec.Type.(*ast.Ident).Name
			word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			words[name] = append(words[name], word)
			return true
		})
	}
	for _, of := range words {
		slices.Sort(of)
	}
	return words
}

var enumerated = regexp.MustCompile(`^CHECK \(\((\w+) = ANY \(ARRAY\[('.*)\]\)\)\)$`)

// checks are the words that the CHECK of each column allows, sorted, by
// table.column, as the catalogue of a migrated database has them.
func checks(t *testing.T, db *pgtest.DB) map[string][]string {
	t.Helper()
	rows, err := db.Admin().Query(t.Context(), `
		select c.conrelid::regclass::text, pg_get_constraintdef(c.oid) from pg_constraint c join pg_class r on r.oid = c.conrelid
		where c.contype = 'c' and c.connamespace = 'berth'::regnamespace and not r.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	type constraint struct{ Table, Check string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[constraint])
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{}
	for _, c := range all {
		m := enumerated.FindStringSubmatch(c.Check)
		if m == nil {
			continue
		}
		var words []string
		for word := range strings.SplitSeq(m[2], ", ") {
			words = append(words, strings.Trim(strings.TrimSuffix(word, "::text"), "'"))
		}
		slices.Sort(words)
		allowed[c.Table+"."+m[1]] = words
	}
	return allowed
}
