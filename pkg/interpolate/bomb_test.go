//go:build !race

package interpolate_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// TestBombs holds that templates which would fill the memory or never end are
// stopped, clearly, in bounded memory, and in less than a second of work. It
// is not parallel: it measures the process. The race detector would multiply
// all of it.
func TestBombs(t *testing.T) {
	const (
		maxMemory = 256 << 20   // bytes allocated from beginning to end, freed ones included
		maxCPU    = time.Second // of the process, so a busy machine does not count
		maxWait   = time.Minute // rendering's own clock is out of the way
	)
	tests := []struct{ name, src, want string }{
		{"counting far", `{{ range until 1000000000 }}{{ end }}`, "until counts further than 100000"},
		{"counting in steps", `{{ untilStep 0 1000000000 1 }}`, "untilStep counts further"},
		{"counting to text", `{{ seq 1 1000000000 }}`, "seq counts further"},
		{"a loop over a number", `{{ range 1000000000 }}{{ end }}`, "does too much"},
		{"loops in loops", strings.Repeat(`{{ range until 1000 }}`, 5) + strings.Repeat(`{{ end }}`, 5), "does too much"},
		{"a long loop of long turns", `{{ range 1000000000 }}{{ if $.nuon.id }}` + strings.Repeat(`{{ if $.nuon.id }}{{ end }}`, 1000) + `{{ end }}{{ end }}`, "does too much"},
		{"a template that calls itself", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" .nuon }}`, "deeper than 100"},
		{"templates that call each other", `{{ define "a" }}{{ template "b" . }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}{{ template "a" .nuon }}`, "deeper than 100"},
		{"a template that calls itself twice", `{{ define "a" }}{{ if lt . 60 }}{{ template "a" (add1 .) }}{{ template "a" (add1 .) }}{{ end }}{{ end }}{{ template "a" 0 }}`, "does too much"},
		{"templates that double", doublingTemplates(60), "does too much"},
		{"repeat", `{{ repeat 1000000000 .nuon.id }}`, "repeat makes a value larger than 8 MiB"},
		{"indent", `{{ indent 1000000000 .nuon.id }}`, "indent makes a value larger"},
		{"nindent", `{{ nindent 1000000000 .nuon.id }}`, "nindent makes a value larger"},
		{"indent of many lines", `{{ indent 2000 (repeat 1000000 "\n") }}`, "indent makes a value larger"},
		{"a wide printf", `{{ printf "%1000000000d" 1 }}`, "widths above 999"},
		{"a precise printf", `{{ printf "%.1000000000f" 1.0 }}`, "widths above 999"},
		{"a printf with its width as argument", `{{ printf "%*d" 1000000000 1 }}`, `"*" and "[n]" are not possible`},
		{"a printf of many wide fields", `{{ printf (repeat 100000 "%999d") 1 2 3 }}`, "printf makes a value larger"},
		{"a printf that says its argument again", `{{ printf (repeat 100000 "%[1]s") .nuon.id }}`, `"*" and "[n]" are not possible`},
		{"doubling text", `{{ $x := .nuon.id }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`, "print makes a value larger"},
		{"doubling text by cat", `{{ $x := .nuon.id }}{{ range until 60 }}{{ $x = cat $x $x }}{{ end }}`, "cat makes a value larger"},
		{"doubling text by replace", `{{ $x := "aa" }}{{ range until 60 }}{{ $x = replace "a" "aa" $x }}{{ end }}`, "replace makes a value larger"},
		{"doubling text by js", `{{ $x := "\\" }}{{ range until 60 }}{{ $x = js $x }}{{ end }}`, "js makes a value larger"},
		{"growing text by html", `{{ $x := "&&&&&&&&" }}{{ range until 100000 }}{{ $x = html (print $x $x) }}{{ end }}`, "larger than 8 MiB"},
		{"doubling lists", `{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}`, "list makes a value larger"},
		{"doubling lists by concat", `{{ $x := list 1 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}`, "concat makes a value larger"},
		{"doubling dicts", `{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}`, "dict makes a value larger"},
		{"a dict in itself", `{{ $d := dict "a" 1 }}{{ $_ := set $d "self" $d }}{{ $d }}`, "set makes a value larger"},
		{"many large values", `{{ $x := repeat 8000000 "x" }}` + variables(1000, `print $x "%d"`), "does too much"},
		{"many large values in a list", `{{ $x := list }}{{ range until 100000 }}{{ $x = append $x (repeat 100000 "x") }}{{ end }}`, "does too much"},
		{"replace amplifies", `{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}`, "replace makes a value larger"},
		{"a regular expression amplifies", `{{ $x := repeat 100000 "a" }}{{ regexReplaceAll "a" $x $x }}`, "regexReplaceAll makes a value larger"},
		{"a regular expression repeats groups", `{{ regexReplaceAll "^(.*)$" (repeat 100000 "a") (repeat 1000 "$1") }}`, "regexReplaceAll makes a value larger"},
		{"a large regular expression", `{{ regexMatch "(abcdefghij){900}" "a" }}`, "too large"},
		{"a slow regular expression", `{{ regexMatch "(a?){900}b" (repeat 1000000 "a") }}`, "too long for this regular expression"},
		{"slow regular expressions", `{{ $x := repeat 10000 "a" }}{{ range 100000000 }}{{ $y := regexMatch "(a?){400}b" $x }}{{ end }}`, "does too much"},
		{"join amplifies", `{{ join (repeat 100000 "x") (until 10000) }}`, "join makes a value larger"},
		{"wrapWith amplifies", `{{ wrapWith 1 (repeat 100000 "x") (repeat 10000 "x ") }}`, "wrapWith makes a value larger"},
		{"splitting to letters", `{{ splitList "" (repeat 8000000 "x") }}`, "splitList counts further"},
		{"splitting to a dict", `{{ split "x" (repeat 8000000 "x") }}`, "split counts further"},
		{"splitting n times", `{{ splitn "x" 8000000 (repeat 8000000 "x") }}`, "splitn counts further"},
		{"splitting by regular expression", `{{ regexSplit "" (repeat 8000000 "x") -1 }}`, "too long for this regular expression"},
		{"small JSON for large values", `{{ fromJson (print "[" (repeat 2000000 "{},") "{}]") }}`, "fromJson takes at most 1024 KiB"},
		{"deep JSON", `{{ fromJson (print (repeat 9000 "[") (repeat 9000 "]")) }}`, "fromJson makes a value larger"},
		{"white space of deep values", prettyBomb, "toPrettyJson makes a value larger"},
		{"key derivation", `{{ range 1000 }}{{ $x := derivePassword 1 "long" "p" "u" "example.com" }}{{ end }}`, "does too much"},
		{"output", `{{ range until 1000 }}{{ repeat 2000 "x" }}{{ end }}`, "the result is larger than 1048576 bytes"},
		{"output without functions", `{{ $x := repeat 100000 "x" }}{{ range until 100000 }}{{ $x }}{{ end }}`, "the result is larger than 1048576 bytes"},
		{"deep blocks", strings.Repeat(`{{ if .nuon.id }}`, 10_000) + strings.Repeat(`{{ end }}`, 10_000), "blocks nest deeper than 100"},
		{"many else ifs", `{{ if .nuon.id }}` + strings.Repeat(`{{ else if .nuon.id }}`, 10_000) + `{{ end }}`, "blocks nest deeper than 100"},
		{"deep parentheses", `{{ ` + strings.Repeat(`(`, 9000) + `.nuon.id` + strings.Repeat(`)`, 9000) + ` }}`, "parentheses nest deeper than 100"},
		{"much code", strings.Repeat(`{{.}}`, 800_000), "more than 50000 actions"},
		{"more code than text", strings.Repeat(`{{ .nuon.id }}`, 40_000), "more than 256 KiB of code"},
		{"many braces of others", strings.Repeat(`{{ a.b }}`, 400_000), "more than 50000 actions"},
		{"a large source", strings.Repeat("x", interpolate.MaxSource) + "{{ .nuon.id }}", "larger than 4 MiB"},
	}
	state := exampleState(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpuTime(t)
			_, err := interpolate.RenderAlways(tt.src, state, interpolate.Options{Timeout: maxWait})
			took := cpuTime(t) - began
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s of work, %d MiB allocated", took.Round(time.Millisecond), allocated>>20)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
			if took > maxCPU {
				t.Errorf("took %s of work, want less than %s", took, maxCPU)
			}
			if allocated > maxMemory {
				t.Errorf("allocated %d MiB, want less than %d", allocated>>20, maxMemory>>20)
			}
		})
	}
}

// prettyBomb prints a list in which thousands of elements lie 150 deep.
const prettyBomb = `{{ $wide := until 30000 }}{{ range until 150 }}{{ $wide = list $wide }}{{ end }}{{ toPrettyJson $wide }}`

// variables assigns n variables.
func variables(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{{ $v%d := "+value+" }}", i, i)
	}
	return b.String()
}

// doublingTemplates makes n templates of which each calls the next twice.
func doublingTemplates(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{{ define "t%d" }}{{ template "t%d" . }}{{ template "t%d" . }}{{ end }}`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `{{ define "t%d" }}{{ end }}{{ template "t0" .nuon }}`, n)
	return b.String()
}

// cpuTime is how long the process has worked.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
