package interpolate

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

const (
	// maxValue is the largest value on the way, in bytes: what a function may
	// return before anything is printed.
	maxValue = 16 << 20
	// maxDepth is how deep lists and maps may nest in a value.
	maxDepth = 1000
	// maxCount is the longest list that until, untilStep and seq may make.
	maxCount = 100_000
)

// budget bounds one rendering. Templates are not trusted: without it a few
// characters can fill the memory or never end.
type budget struct {
	deadline time.Time
	timeout  time.Duration
}

// tick is called where a template can spend time: before each function and at
// the head of each loop turn and named template.
func (b *budget) tick() error {
	if !b.deadline.IsZero() && time.Now().After(b.deadline) {
		return &Error{Message: fmt.Sprintf("rendering takes longer than %s", b.timeout)}
	}
	return nil
}

// guard makes a function respect the budget: it checks the time before, and
// the size of the result after.
func (b *budget) guard(name string, fn any) any {
	f := reflect.ValueOf(fn)
	t := f.Type()
	outs := []reflect.Type{t.Out(0), reflect.TypeFor[error]()}
	ins := make([]reflect.Type, t.NumIn())
	for i := range ins {
		ins[i] = t.In(i)
	}
	measured := !slices.Contains(accessors, name)
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(reflect.FuncOf(ins, outs, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if err := b.tick(); err != nil {
			return fail(err)
		}
		call := f.Call
		if t.IsVariadic() {
			call = f.CallSlice
		}
		results := call(args)
		if len(results) == 1 {
			results = append(results, reflect.Zero(outs[1]))
		}
		if measured && results[1].IsNil() && size(results[0], maxValue, 0) > maxValue {
			return fail(tooLarge(name))
		}
		return results
	}).Interface()
}

func tooLarge(function string) error {
	return &Error{Message: fmt.Sprintf("%s makes a value larger than %d MiB", function, maxValue>>20)}
}

// size estimates the bytes of a value, all the way down. It stops above the
// limit and below maxDepth, so a value that contains itself is too large.
func size(v reflect.Value, limit, depth int) int {
	if limit < 0 || depth > maxDepth {
		return maxValue + 1
	}
	const word = 16
	total := word
	switch v.Kind() {
	case reflect.String:
		return total + v.Len()
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			total += size(v.Elem(), limit-total, depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return total + v.Len()
		}
		for i := 0; i < v.Len() && total <= limit; i++ {
			total += size(v.Index(i), limit-total, depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); total <= limit && it.Next(); {
			total += size(it.Key(), limit-total, depth+1)
			total += size(it.Value(), limit-total, depth+1)
		}
	}
	return total
}

var wideVerb = regexp.MustCompile(`%[-+# 0]*(\d{4,}|\*|[^a-zA-Z%]*\.(\d{4,}|\*)|\[)`)

// boundedFunctions replaces functions whose result can be far larger than
// their arguments by ones that look first.
func boundedFunctions(table template.FuncMap) template.FuncMap {
	repeat := table["repeat"].(func(int, string) string)
	indent := table["indent"].(func(int, string) string)
	nindent := table["nindent"].(func(int, string) string)
	join := table["join"].(func(string, any) string)
	replace := table["replace"].(func(string, string, string) string)
	wrapWith := table["wrapWith"].(func(int, string, string) string)
	until := table["until"].(func(int) []int)
	untilStep := table["untilStep"].(func(int, int, int) []int)
	seq := table["seq"].(func(...int) string)
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
		"until": func(n int) ([]int, error) {
			if n > maxCount || n < -maxCount {
				return nil, tooLong("until")
			}
			return until(n), nil
		},
		"untilStep": func(start, stop, step int) ([]int, error) {
			if step != 0 && distance(start, stop)/distance(0, step) > maxCount {
				return nil, tooLong("untilStep")
			}
			return untilStep(start, stop, step), nil
		},
		"seq": func(args ...int) (string, error) {
			for _, a := range args {
				if a > maxCount || a < -maxCount {
					return "", tooLong("seq")
				}
			}
			return seq(args...), nil
		},
		"printf": func(format string, args ...any) (string, error) {
			if wideVerb.MatchString(format) {
				return "", &Error{Message: "printf: widths above 999, \"*\" and \"[n]\" are not possible"}
			}
			return fmt.Sprintf(format, args...), nil
		},
	}
	for _, name := range []string{"regexReplaceAll", "regexReplaceAllLiteral"} {
		replaceAll := table[name].(func(string, string, string) string)
		out[name] = func(re, s, with string) (string, error) {
			if over(len(s)+1, len(with)) {
				return "", tooLarge(name)
			}
			return replaceAll(re, s, with), nil
		}
		must := "mustR" + name[1:]
		mustReplaceAll := table[must].(func(string, string, string) (string, error))
		out[must] = func(re, s, with string) (string, error) {
			if over(len(s)+1, len(with)) {
				return "", tooLarge(must)
			}
			return mustReplaceAll(re, s, with)
		}
	}
	return out
}

func tooLong(function string) error {
	return &Error{Message: fmt.Sprintf("%s counts further than %d", function, maxCount)}
}

func distance(a, b int) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// over tells whether n things of a size are larger than a value may be.
func over(n, size int) bool { return n > 0 && size > maxValue/n }
