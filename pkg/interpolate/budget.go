package interpolate

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

const (
	// maxValue is the largest value on the way, in bytes: what a function may
	// return before anything is printed.
	maxValue = 8 << 20
	// maxDeep is how deep lists and maps may nest in a value.
	maxDeep = 200
	// maxCount is the longest list that until, untilStep, seq and splitList
	// may make.
	maxCount = 100_000
	// maxText is the longest text, in bytes, that a function may take apart: a
	// list of its pieces is twenty times as large.
	maxText = 1 << 20
	// maxWork bounds a rendering whatever the machine's speed: a node that is
	// executed is 1, a function call 1 and 1 more for each bytesPerWork that it
	// reads and makes. It is about a third of a second.
	maxWork      = 400_000
	bytesPerWork = 256
	// maxRecursion is how deep named templates may call each other.
	maxRecursion = 100
)

// budget bounds one rendering. Templates are not trusted: without it a few
// characters can fill the memory or never end.
type budget struct {
	deadline time.Time
	timeout  time.Duration
	work     int
	depth    int // of named templates
}

// spend is called where a template can spend time: before and after each
// function, for each path, and at the head of each loop turn and named
// template.
func (b *budget) spend(work int) error {
	if b.work += work; b.work > maxWork {
		return &Error{Message: fmt.Sprintf("the template does too much: more than %d steps", maxWork)}
	}
	if !b.deadline.IsZero() && time.Now().After(b.deadline) {
		return &Error{Message: fmt.Sprintf("rendering takes longer than %s", b.timeout)}
	}
	return nil
}

// enter begins a named template.
func (b *budget) enter(work int) error {
	if b.depth++; b.depth > maxRecursion {
		return &Error{Message: fmt.Sprintf("templates call each other deeper than %d", maxRecursion)}
	}
	return b.spend(work)
}

// expensive lists functions that cost more than their arguments tell: the key
// derivation needs a tenth of a second and 32 MiB.
var expensive = map[string]int{"derivePassword": maxWork / 3}

// textLimits bounds the text that goes into functions which make far more of
// it than it is long, or take far more time.
var textLimits = map[string]int{
	"fromJson": maxText, "mustFromJson": maxText,
	"wrap": maxText, "wrapWith": maxText, "plural": maxText, "initials": maxText,
	"semver": 4 << 10, "semverCompare": 4 << 10,
	"toDate": 4 << 10, "mustToDate": 4 << 10, "toDecimal": 4 << 10, "duration": 4 << 10,
}

// guard makes a function respect the budget: it checks the time and the
// arguments before, and the size of the result after.
func (b *budget) guard(name string, fn any) any {
	f := reflect.ValueOf(fn)
	t := f.Type()
	outs := []reflect.Type{t.Out(0), reflect.TypeFor[error]()}
	ins := make([]reflect.Type, t.NumIn())
	for i := range ins {
		ins[i] = t.In(i)
	}
	measured := !slices.Contains(accessors, name)
	limit, limited := textLimits[name]
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(reflect.FuncOf(ins, outs, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		text := textLength(args)
		if limited && text > limit {
			return fail(errorf("%s takes at most %d KiB of text", name, limit>>10))
		}
		if err := b.spend(1 + expensive[name] + text/bytesPerWork); err != nil {
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
		if measured && results[1].IsNil() {
			made := size(results[0], maxValue, 0)
			if made > maxValue {
				return fail(tooLarge(name))
			}
			if err := b.spend(made / bytesPerWork); err != nil {
				return fail(err)
			}
		}
		return results
	}).Interface()
}

// textLength is how many bytes of text stand directly in the arguments.
func textLength(args []reflect.Value) int {
	n := 0
	for _, a := range args {
		for a.Kind() == reflect.Interface {
			a = a.Elem()
		}
		if a.Kind() == reflect.String {
			n += a.Len()
		}
	}
	return n
}

func tooLarge(function string) error {
	return errorf("%s makes a value larger than %d MiB, or deeper than %d", function, maxValue>>20, maxDeep)
}

// size estimates the bytes of a value, all the way down. It stops above the
// limit and below maxDeep, so a value that contains itself is too large.
func size(v reflect.Value, limit, depth int) int {
	if limit < 0 || depth > maxDeep {
		return maxValue + 1
	}
	const word = 16
	total := word
	switch v.Kind() {
	case reflect.String:
		return total + v.Len()
	case reflect.Interface:
		if !v.IsNil() {
			total += size(v.Elem(), limit-total, depth)
		}
	case reflect.Pointer:
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
