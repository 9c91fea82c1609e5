package interpolate

import (
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"text/template"
)

// boundedFunctions replaces functions whose result can be far larger than
// their arguments by ones that look first.
func boundedFunctions(table template.FuncMap, b *budget) template.FuncMap {
	repeat := table["repeat"].(func(int, string) string)
	indent := table["indent"].(func(int, string) string)
	nindent := table["nindent"].(func(int, string) string)
	join := table["join"].(func(string, any) string)
	replace := table["replace"].(func(string, string, string) string)
	wrapWith := table["wrapWith"].(func(int, string, string) string)
	out := template.FuncMap{
		"repeat": func(n int, s string) (string, error) {
			if n < 0 || over(n, len(s)) {
				return "", tooLarge("repeat")
			}
			return repeat(n, s), nil
		},
		"indent": func(n int, s string) (string, error) {
			if n < 0 || over(n, strings.Count(s, "\n")+1) {
				return "", tooLarge("indent")
			}
			return indent(n, s), nil
		},
		"nindent": func(n int, s string) (string, error) {
			if n < 0 || over(n, strings.Count(s, "\n")+1) {
				return "", tooLarge("nindent")
			}
			return nindent(n, s), nil
		},
		"join": func(sep string, list any) (string, error) {
			if v := reflect.ValueOf(list); (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && over(v.Len(), len(sep)) {
				return "", tooLarge("join")
			}
			return join(sep, list), nil
		},
		"replace": func(old, with, s string) (string, error) {
			if over(strings.Count(s, old), len(with)) {
				return "", tooLarge("replace")
			}
			return replace(old, with, s), nil
		},
		"wrapWith": func(n int, sep, s string) (string, error) {
			if over(len(s)+1, len(sep)) {
				return "", tooLarge("wrapWith")
			}
			return wrapWith(n, sep, s), nil
		},
	}
	boundCounts(table, out)
	boundPretty(table, out)
	boundRegexps(table, out, b)
	return out
}

// boundCounts bounds the functions that make a list.
func boundCounts(table, out template.FuncMap) {
	until := table["until"].(func(int) []int)
	untilStep := table["untilStep"].(func(int, int, int) []int)
	seq := table["seq"].(func(...int) string)
	split := table["split"].(func(string, string) map[string]string)
	splitList := table["splitList"].(func(string, string) []string)
	splitn := table["splitn"].(func(string, int, string) map[string]string)
	out["until"] = func(n int) ([]int, error) {
		if n > maxCount || n < -maxCount {
			return nil, tooLong("until")
		}
		return until(n), nil
	}
	out["untilStep"] = func(start, stop, step int) ([]int, error) {
		if step != 0 && distance(start, stop)/distance(0, step) > maxCount {
			return nil, tooLong("untilStep")
		}
		return untilStep(start, stop, step), nil
	}
	out["seq"] = func(args ...int) (string, error) {
		for _, a := range args {
			if a > maxCount || a < -maxCount {
				return "", tooLong("seq")
			}
		}
		return seq(args...), nil
	}
	out["split"] = func(sep, s string) (map[string]string, error) {
		if strings.Count(s, sep) > maxCount {
			return nil, tooLong("split")
		}
		return split(sep, s), nil
	}
	out["splitList"] = func(sep, s string) ([]string, error) {
		if strings.Count(s, sep) > maxCount {
			return nil, tooLong("splitList")
		}
		return splitList(sep, s), nil
	}
	out["splitn"] = func(sep string, n int, s string) (map[string]string, error) {
		if strings.Count(s, sep) > maxCount {
			return nil, tooLong("splitn")
		}
		return splitn(sep, n, s), nil
	}
}

func tooLong(function string) error { return errorf("%s counts further than %d", function, maxCount) }

func distance(a, b int) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// over tells whether n things of a size are larger than a value may be.
func over(n, size int) bool { return n > 0 && size > maxValue/n }

// maxPrecision is the widest field of printf.
const maxPrecision = 999

var (
	verb = regexp.MustCompile(`%[-+# 0]*(\d*)(?:\.(\d*))?([*\[]?)(.?)`)
	// stableVerbs print a value that holds pointers the same way each time.
	stableVerbs = "svq%"
)

// printf is fmt.Sprintf for formats whose widths are plain numbers. Addresses
// are never printed.
func printf(format string, args ...any) (string, error) {
	width, stable := 0, true
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[3] != "" {
			return "", errorf(`printf: "*" and "[n]" are not possible`)
		}
		for _, digits := range m[1:3] {
			n, err := strconv.Atoi(digits)
			if digits != "" && (err != nil || n > maxPrecision) {
				return "", errorf("printf: widths above %d are not possible", maxPrecision)
			}
			width += n
		}
		if m[4] == "p" {
			return "", errorf("printf: %%p is not possible, it prints an address")
		}
		stable = stable && strings.Contains(stableVerbs, m[4]) && !strings.Contains(m[0], "#")
	}
	if width > maxValue {
		return "", tooLarge("printf")
	}
	if !stable {
		for _, a := range args {
			if holdsPointer(reflect.ValueOf(a), 0) {
				return "", errorf("printf: a %s prints with %%s, %%v and %%q only", reflect.TypeOf(a))
			}
		}
	}
	return fmt.Sprintf(format, args...), nil
}

func holdsPointer(v reflect.Value, depth int) bool {
	if depth > maxDeep {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	case reflect.Interface:
		return holdsPointer(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holdsPointer(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if holdsPointer(it.Value(), depth+1) {
				return true
			}
		}
	}
	return false
}

// boundPretty looks at the white space before it is made: in a deep value it
// is far larger than the value.
func boundPretty(table, out template.FuncMap) {
	plain := table["toPrettyJson"].(func(any) string)
	must := table["mustToPrettyJson"].(func(any) (string, error))
	out["toPrettyJson"] = func(v any) (string, error) {
		if white(reflect.ValueOf(v), 0, 0) > maxValue {
			return "", tooLarge("toPrettyJson")
		}
		return plain(v), nil
	}
	out["mustToPrettyJson"] = func(v any) (string, error) {
		if white(reflect.ValueOf(v), 0, 0) > maxValue {
			return "", tooLarge("mustToPrettyJson")
		}
		return must(v)
	}
}

// white counts the white space of a value printed over many lines. It stops
// above maxValue.
func white(v reflect.Value, depth, sum int) int {
	if depth > maxDeep {
		return maxValue + 1
	}
	line := 1 + 2*(depth+1)
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return white(v.Elem(), depth, sum)
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && sum <= maxValue; i++ {
			sum = white(v.Index(i), depth+1, sum+line)
		}
	case reflect.Map:
		for it := v.MapRange(); sum <= maxValue && it.Next(); {
			sum = white(it.Value(), depth+1, sum+line)
		}
	}
	return sum
}

const (
	// maxProgram is the largest regular expression, in instructions.
	maxProgram = 4000
	// maxMatching is the most work of one search: instructions times bytes. It
	// is about half a second at worst.
	maxMatching = 20_000_000
	// matchingPerWork is how much of it counts as one step of a rendering.
	matchingPerWork = 100
)

// boundRegexps bounds the time of regular expressions: it grows with the
// product of expression and text.
func boundRegexps(table, out template.FuncMap, b *budget) {
	for kind, bound := range map[string]func(regexpFunction) any{
		"egexMatch": regexpFunction.ofTwo, "egexFind": regexpFunction.ofTwo,
		"egexFindAll": regexpFunction.list, "egexSplit": regexpFunction.list,
		"egexReplaceAll": regexpFunction.replace, "egexReplaceAllLiteral": regexpFunction.replace,
	} {
		for _, prefix := range []string{"r", "mustR"} {
			f := regexpFunction{name: prefix + kind, f: table[prefix+kind], budget: b}
			if bounded := bound(f); bounded != nil {
				out[f.name] = bounded
			}
		}
	}
}

// regexpFunction is a function that searches with a regular expression, in one
// of the forms that such functions have.
type regexpFunction struct {
	name   string
	f      any
	budget *budget
}

// search refuses what would take too long.
func (r regexpFunction) search(re, s string) error { return r.budget.matching(r.name, re, s) }

func (r regexpFunction) ofTwo() any {
	switch f := r.f.(type) {
	case func(string, string) bool:
		return boundSearch(r, func(re, s string) (bool, error) { return f(re, s), nil })
	case func(string, string) (bool, error):
		return boundSearch(r, f)
	case func(string, string) string:
		return boundSearch(r, func(re, s string) (string, error) { return f(re, s), nil })
	case func(string, string) (string, error):
		return boundSearch(r, f)
	}
	return nil
}

func boundSearch[T any](r regexpFunction, f func(re, s string) (T, error)) func(re, s string) (T, error) {
	return func(re, s string) (T, error) {
		if err := r.search(re, s); err != nil {
			var none T
			return none, err
		}
		return f(re, s)
	}
}

func (r regexpFunction) list() any {
	var find func(string, string, int) ([]string, error)
	switch f := r.f.(type) {
	case func(string, string, int) []string:
		find = func(re, s string, n int) ([]string, error) { return f(re, s, n), nil } //nolint:unparam // the form of the other
	case func(string, string, int) ([]string, error):
		find = f
	default:
		return nil
	}
	return func(re, s string, n int) ([]string, error) {
		if err := r.search(re, s); err != nil {
			return nil, err
		}
		return find(re, s, n)
	}
}

func (r regexpFunction) replace() any {
	var replace func(string, string, string) (string, error)
	switch f := r.f.(type) {
	case func(string, string, string) string:
		replace = func(re, s, with string) (string, error) { return f(re, s, with), nil } //nolint:unparam // the form of the other
	case func(string, string, string) (string, error):
		replace = f
	default:
		return nil
	}
	return func(re, s, with string) (string, error) {
		if over(len(s)+1, len(with)) {
			return "", tooLarge(r.name)
		}
		// $0 in the replacement stands for up to the whole text.
		if !strings.Contains(r.name, "Literal") && over(len(s)+1, 1+strings.Count(with, "$")) {
			return "", tooLarge(r.name)
		}
		if err := r.search(re, s); err != nil {
			return "", err
		}
		return replace(re, s, with)
	}
}

// matching refuses a search that would take too long, and accounts for any
// other.
func (b *budget) matching(function, re, s string) error {
	if len(re) > maxProgram {
		return errorf("%s: the regular expression is too large", function)
	}
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return nil //nolint:nilerr // the function itself says what it does about it
	}
	n := instructions(parsed)
	if n > maxProgram {
		return errorf("%s: the regular expression is too large", function)
	}
	if len(s) > maxText || n*(len(s)+1) > maxMatching {
		return errorf("%s: the text is too long for this regular expression", function)
	}
	return b.spend(n * (len(s) + 1) / matchingPerWork)
}

// instructions estimates how many instructions an expression compiles to.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxProgram+1)
}
