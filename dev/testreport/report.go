package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const (
	modulePrefix = "github.com/berth-dev/berth/"
	maxLine      = 64 << 20 // a test may print a whole plan in one line
)

// An event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build events
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string  // the package that did not compile
}

// A report collects what a run of the tests said.
type report struct {
	out     io.Writer
	module  string                      // whose header was printed last
	output  map[string]*strings.Builder // by test, package or build, until its end
	broken  map[string]bool             // packages in which a test failed
	passed  int
	failed  []string
	said    []string // the first lines of each that failed
	skipped []string
	slow    []slowTest
	// conformance are the lines of the conformance kit, one for each engine.
	conformance []string
}

// A slowTest took long, parts of its own included and waits for its turn not.
type slowTest struct {
	name    string
	seconds float64
}

// conformanceMark begins what the conformance kit says of an engine.
const conformanceMark = "conformance: "

// How much of a failed test the summary repeats, for a thousand lines of logs may stand
// above it: the first messages, of each the lines that follow the first, and bytes of a line.
const (
	saidMessages = 3
	saidMore     = 4
	saidBytes    = 300
)

// testLine is what a test says of itself, as t.Log and t.Error print it.
var testLine = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

// slowest is how many of them the report names, and how long each takes at least.
const (
	slowest    = 12
	slowSecond = 30
)

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string]*strings.Builder{}, broken: map[string]bool{}}
}

// read takes events until the end of the stream. Lines that are no events are
// Go's own complaints, and are passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			r.printf("%s\n", lines.Text())
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

func (r *report) take(e event) {
	switch e.Action {
	case "output":
		if _, line, found := strings.Cut(e.Output, conformanceMark); found && strings.Contains(line, " ran ") {
			r.conformance = append(r.conformance, strings.TrimSpace(line))
		}
		if !strings.HasPrefix(e.Output, "=== ") { // which test runs: known
			r.keep(nameOf(e), e.Output)
		}
	case "build-output":
		r.keep("build "+e.ImportPath, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
	}
}

func (r *report) keep(name, text string) {
	b := r.output[name]
	if b == nil {
		b = &strings.Builder{}
		r.output[name] = b
	}
	b.WriteString(text)
}

// drop forgets and returns what a test or package printed.
func (r *report) drop(name string) string {
	b := r.output[name]
	delete(r.output, name)
	if b == nil {
		return ""
	}
	return b.String()
}

func (r *report) endTest(e event) {
	name := nameOf(e)
	text := r.drop(name)
	if e.Elapsed >= slowSecond && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{name, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped = append(r.skipped, name)
	case "fail":
		r.header(e.Package)
		r.broken[e.Package] = true
		r.failed = append(r.failed, name)
		r.said = append(r.said, firstLines(name, text)...)
		r.printf("%s", text)
	}
}

// firstLines are the first messages in which a test says what it saw, each with its
// first lines.
func firstLines(name, text string) (lines []string) {
	messages, more := 0, 0
	for line := range strings.Lines(text) {
		said := strings.TrimSpace(line)
		said = strings.ToValidUTF8(said[:min(len(said), saidBytes)], "")
		switch {
		case testLine.MatchString(line):
			if messages == saidMessages {
				return lines
			}
			messages, more = messages+1, saidMore
			lines = append(lines, name+": "+said)
		case more > 0 && strings.HasPrefix(line, "        ") && said != "":
			more--
			lines = append(lines, "    "+said)
		default:
			more = 0
		}
	}
	return lines
}

func (r *report) endPackage(e event) {
	text := r.drop(nameOf(e))
	switch e.Action {
	case "skip":
		return // it has no tests
	case "pass":
		r.header(e.Package)
		r.printf("  ok    %-50s %7.1fs\n", short(e.Package), e.Elapsed)
		return
	}
	r.header(e.Package)
	if e.FailedBuild != "" {
		r.printf("%s", r.drop("build "+e.FailedBuild))
	}
	if !r.broken[e.Package] { // it broke outside of a test: build, init, panic, time-out
		r.failed = append(r.failed, short(e.Package))
		r.printf("%s", text)
		for _, left := range r.unfinished(e.Package) {
			r.printf("%s", r.drop(left))
		}
	}
	r.printf("  FAIL  %-50s %7.1fs\n", short(e.Package), e.Elapsed)
}

// unfinished lists the tests of a package that never ended.
func (r *report) unfinished(pkg string) []string {
	var names []string
	for name := range r.output {
		if strings.HasPrefix(name, short(pkg)+".Test") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// header starts the part of a module.
func (r *report) header(pkg string) {
	module, _, _ := strings.Cut(short(pkg), "/")
	if module != r.module {
		r.module = module
		r.printf("\n%s\n", module)
	}
}

// summary prints the end of the report and says whether the suite is good.
func (r *report) summary(allowed []skip) bool {
	lacking := map[string][]string{}
	var unlisted []string
	for _, test := range r.skipped {
		if s, ok := find(allowed, test); ok {
			lacking[s.engine] = append(lacking[s.engine], test+": "+s.reason)
		} else {
			unlisted = append(unlisted, test)
		}
	}
	slices.SortStableFunc(r.slow, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for i, test := range r.slow[:min(slowest, len(r.slow))] {
		if i == 0 {
			r.printf("\nslowest tests:\n")
		}
		r.printf("  %6.1fs  %s\n", test.seconds, test.name)
	}
	r.list("conformance", r.conformance)
	for _, engine := range engines {
		r.list("skipped for lack of "+engine, lacking[engine])
	}
	r.list("skipped, but not in dev/skips.txt", unlisted)
	r.list("failed", r.failed)
	if len(r.said) > 0 {
		r.printf("\nwhat they said first:\n  %s\n", strings.Join(r.said, "\n  "))
	}
	if r.passed+len(r.failed) == 0 {
		r.printf("\nno test ran\n")
	}
	r.printf("\n%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	return r.passed > 0 && len(r.failed) == 0 && len(unlisted) == 0
}

func (r *report) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	slices.Sort(lines)
	r.printf("\n%s:\n  %s\n", title, strings.Join(lines, "\n  "))
}

// printf writes to the terminal; that it is gone is no news for anybody.
func (r *report) printf(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }

func short(pkg string) string { return strings.TrimPrefix(pkg, modulePrefix) }

func nameOf(e event) string {
	if e.Test == "" {
		return short(e.Package)
	}
	return short(e.Package) + "." + e.Test
}
