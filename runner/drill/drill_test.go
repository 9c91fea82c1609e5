package drill_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/drill"
)

var update = flag.Bool("update", false, "write the list of attacks in docs/threat-model.md")

// The list of attacks stands between these lines of the threat model.
const (
	listBegins = "<!-- attacks of the drill: go test ./drill -update -->\n"
	listEnds   = "<!-- end of the attacks -->\n"
)

// TestAttacks: names are unique and can be typed, and each attack says what it tries, who
// does, and where the drill looks.
func TestAttacks(t *testing.T) {
	t.Parallel()
	all := drill.Attacks()
	if len(all) < 45 {
		t.Errorf("%d attacks, want at least 45", len(all))
	}
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, a := range all {
		if !name.MatchString(a.Name) || seen[a.Name] || a.Try == "" || a.World == "" || a.Adversary == "" {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
		if !drill.Known(a.Name) {
			t.Errorf("%s is not known", a.Name)
		}
	}
	if drill.Known("never-heard-of") {
		t.Error("an attack is known that is none")
	}
}

// TestVerdicts: one attack that succeeded, or that nobody can judge, is enough.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	refused, succeeded, unclear := drill.Outcome{Verdict: drill.Refused}, drill.Outcome{Verdict: drill.Succeeded}, drill.Outcome{Verdict: drill.Unclear}
	for _, tc := range []struct {
		name              string
		outcomes, allowed []drill.Outcome
		want              bool
	}{
		{name: "all refused", outcomes: []drill.Outcome{refused, refused}, allowed: []drill.Outcome{succeeded}, want: true},
		{name: "one succeeded", outcomes: []drill.Outcome{refused, succeeded}, allowed: []drill.Outcome{succeeded}},
		{name: "one is unclear", outcomes: []drill.Outcome{refused, unclear}, allowed: []drill.Outcome{succeeded}},
		{name: "what is allowed does not work", outcomes: []drill.Outcome{refused}, allowed: []drill.Outcome{refused}},
		{name: "none was tried"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := (drill.Report{Outcomes: tc.outcomes, Allowed: tc.allowed}).OK(); got != tc.want {
				t.Errorf("OK() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestReportIsOneTable: what others wrote does not leave its cell.
func TestReportIsOneTable(t *testing.T) {
	t.Parallel()
	r := drill.Report{Outcomes: []drill.Outcome{{
		Attack: drill.Attack{Name: "a", Adversary: drill.Plane, Try: "b", World: "c"}, Verdict: drill.Refused, Rule: "x | y\n| z |" + strings.Repeat("é", 200),
	}}}
	var line string
	for l := range strings.Lines(r.Markdown()) {
		if strings.HasPrefix(l, "| a |") {
			line = l
		}
	}
	if strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 6 || !strings.Contains(line, "…") {
		t.Errorf("the line is %q", line)
	}
}

// TestThreatModelListsTheAttacks: docs/threat-model.md has the attacks of the drill, by who
// tries them.
func TestThreatModelListsTheAttacks(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "threat-model.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), listBegins)
	got, after, ends := strings.Cut(rest, listEnds)
	if !found || !ends {
		t.Fatalf("%s has no lines %q and %q", path, listBegins, listEnds)
	}
	want := list()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s lists other attacks: run go test ./drill -update", path)
	}
	if err := os.WriteFile(path, []byte(before+listBegins+want+listEnds+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list() string {
	var b strings.Builder
	b.WriteString("\n| attack | who | what is tried |\n|---|---|---|\n")
	all := drill.Attacks()
	slices.SortStableFunc(all, func(a, b drill.Attack) int { return strings.Compare(string(a.Adversary), string(b.Adversary)) })
	for _, a := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Name, a.Adversary, a.Try)
	}
	b.WriteString("\n")
	return b.String()
}
