package observe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/otlptranslator"
)

const root = "../.."

// An instrument is a row of the table, or a call that makes one.
type instrument struct {
	Name, Kind, Unit, What string
}

// kinds are the methods of telemetry.Instruments that make instruments, with
// what the table calls these and what Prometheus makes of them.
var kinds = map[string]struct {
	inTable string
	is      otlptranslator.MetricType
}{
	"Counter":       {"counter", otlptranslator.MetricTypeMonotonicCounter},
	"UpDownCounter": {"sum that shrinks", otlptranslator.MetricTypeNonMonotonicCounter},
	"Duration":      {"histogram", otlptranslator.MetricTypeHistogram},
	"Gauge":         {"gauge", otlptranslator.MetricTypeGauge},
}

// unmade are the methods of OpenTelemetry's meter: only pkg/telemetry calls them.
var unmade = regexp.MustCompile(`^(Int64|Float64)(Observable)?(Counter|UpDownCounter|Histogram|Gauge)$`)

// inCode finds the instruments that files of one folder make, and what is wrong
// with how they do.
func inCode(t *testing.T, folder string) (made map[string]instrument, faults []string) {
	t.Helper()
	made = map[string]instrument{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, wrong, err := instrumentsIn(path, text)
		for name, i := range found {
			if before, twice := made[name]; twice && before != i {
				wrong = append(wrong, fmt.Sprintf("%s: %s is made in two ways", path, name))
			}
			made[name] = i
		}
		faults = append(faults, wrong...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made, faults
}

// instrumentsIn reads one file.
func instrumentsIn(path string, text []byte) (made map[string]instrument, faults []string, err error) {
	if !strings.Contains(string(text), "go.opentelemetry.io/otel") && !strings.Contains(string(text), "pkg/telemetry") {
		return nil, nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	made = map[string]instrument{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall {
			return true
		}
		method, isMethod := call.Fun.(*ast.SelectorExpr)
		if !isMethod {
			return true
		}
		if unmade.MatchString(method.Sel.Name) && file.Name.Name != "telemetry" {
			faults = append(faults, fmt.Sprintf("%s: make instruments by telemetry.InstrumentsOf, not by %s", path, method.Sel.Name))
		}
		kind, isKind := kinds[method.Sel.Name]
		if !isKind || len(call.Args) != 3 {
			return true
		}
		words := literals(call.Args)
		i := instrument{Name: words[0], Kind: kind.inTable, Unit: words[1], What: words[2]}
		if method.Sel.Name == "Duration" {
			i.Unit, i.What = "s", words[1]
		}
		if !regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`).MatchString(i.Name) || i.Unit == "" || i.What == "" {
			faults = append(faults, fmt.Sprintf("%s: %s(%q, …) wants literals: a name in dots, a unit, what it counts", path, method.Sel.Name, i.Name))
		}
		made[i.Name] = i
		return true
	})
	return made, faults, nil
}

// literals are the texts of those arguments that are literals.
func literals(args []ast.Expr) []string {
	words := make([]string, len(args))
	for n, arg := range args {
		if literal, is := arg.(*ast.BasicLit); is && literal.Kind == token.STRING {
			words[n], _ = strconv.Unquote(literal.Value)
		}
	}
	return words
}

// A row of one of the tables in docs/reference/metrics.md.
type row struct {
	instrument

	prometheus string
	by         []string
	library    bool
}

func inTable(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	own, libraries, found := strings.Cut(string(text), "\n## From libraries\n")
	if !found {
		t.Fatal("docs/reference/metrics.md has no section From libraries")
	}
	return append(rows(own, false), rows(libraries, true)...)
}

// rows are those that have the seven columns of a table of metrics.
func rows(text string, library bool) (all []row) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[0], " `") {
			continue
		}
		for n := range cells {
			cells[n] = strings.Trim(strings.TrimSpace(cells[n]), "`")
		}
		r := row{instrument: instrument{cells[1], cells[2], cells[3], cells[6]}, prometheus: cells[0], library: library}
		for by := range strings.SplitSeq(cells[4], ",") {
			if by = strings.TrimSpace(by); by != "" {
				r.by = append(r.by, by)
			}
		}
		all = append(all, r)
	}
	return all
}

// Every instrument that is made stands in the table with its kind, unit and
// meaning, and the other way around.
func TestEveryInstrumentIsInTheTable(t *testing.T) {
	t.Parallel()
	made := map[string]instrument{}
	for _, folder := range []string{"pkg", "services", "runner", "cli"} {
		found, faults := inCode(t, folder)
		for _, fault := range faults {
			t.Error(fault)
		}
		for name, i := range found {
			made[name] = i
		}
	}
	const least = 25 // fewer were not all found
	if len(made) < least {
		t.Errorf("found %d instruments, want at least %d", len(made), least)
	}
	table := map[string]instrument{}
	for _, r := range inTable(t) {
		if !r.library {
			table[r.Name] = r.instrument
		}
	}
	if diff := cmp.Diff(made, table); diff != "" {
		t.Errorf("docs/reference/metrics.md (-code +table):\n%s", diff)
	}
}

// The names that the table gives for Prometheus are those that its exporter makes.
func TestNamesInPrometheus(t *testing.T) {
	t.Parallel()
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	for _, r := range inTable(t) {
		if r.Name == "" {
			continue // the exporter's own
		}
		for _, kind := range kinds {
			if kind.inTable != r.Kind {
				continue
			}
			if got, err := namer.Build(otlptranslator.Metric{Name: r.Name, Unit: r.Unit, Type: kind.is}); err != nil || got != r.prometheus {
				t.Errorf("%s is %s in Prometheus (%v), and %s in the table", r.Name, got, err, r.prometheus)
			}
		}
	}
}

// The scan finds what is wrong.
func TestScanFindsFaults(t *testing.T) {
	t.Parallel()
	const head = "package x\nimport \"github.com/berth-dev/berth/pkg/telemetry\"\nvar i = telemetry.InstrumentsOf(\"x\")\n"
	tests := []struct{ name, code, wantFault string }{
		{"as it should be", `var a = i.Counter("a.b", "{c}", "what")`, ""},
		{"a name that is put together", `var a = i.Counter("a."+b, "{c}", "what")`, "wants literals"},
		{"no dots", `var a = i.Counter("a_b", "{c}", "what")`, "wants literals"},
		{"no unit", `var a = i.Gauge("a.b", "", "what")`, "wants literals"},
		{"nothing said", `var a = i.Duration("a.b", "", nil)`, "wants literals"},
		{"past us", `var a, _ = m.Int64Counter("a.b")`, "telemetry.InstrumentsOf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, faults, err := instrumentsIn("x.go", []byte(head+tt.code))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(faults, "\n"); (got == "") != (tt.wantFault == "") || !strings.Contains(got, tt.wantFault) {
				t.Errorf("faults: %q, want %q", got, tt.wantFault)
			}
		})
	}
}
