package installs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Values are inputs by name; every value travels as a string.
type Values map[string]string

// Inputs are the inputs of an install that were set, apart by whether they may
// be stored in clear.
type Inputs struct {
	Plain     Values
	Sensitive Values
}

// Change sets and unsets inputs.
type Change struct {
	Set   Values
	Unset []string
	Actor string // who makes it
}

// Apply checks a change against the inputs that an app defines and makes it.
// It reports everything that is wrong at once. What the app no longer defines
// is dropped. It does no I/O.
func Apply(defined []appconfig.Input, now Inputs, change Change) (Inputs, error) {
	var faults []fault.FieldError
	fail := func(name, code, format string, args ...any) {
		faults = append(faults, fault.FieldError{Pointer: "/inputs/" + name, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
	byName := map[string]appconfig.Input{}
	for _, in := range defined {
		byName[in.Name] = in
	}
	unknown := func(name string) {
		fail(name, "unknown_input", "the app has no input %q%s", name, place.Meant(name, slices.Sorted(maps.Keys(byName))))
	}
	merged := maps.Clone(now.Plain)
	if merged == nil {
		merged = Values{}
	}
	maps.Copy(merged, now.Sensitive)
	for _, name := range change.Unset {
		if _, ok := byName[name]; !ok {
			unknown(name)
		}
		delete(merged, name)
	}
	for name, value := range change.Set {
		in, ok := byName[name]
		switch {
		case !ok:
			unknown(name)
			continue
		case slices.Contains(change.Unset, name):
			fail(name, "exclusive", "input %q is both set and unset", name)
			continue
		}
		if problem := in.Check(value); problem != "" {
			// The value itself may be a secret.
			fail(name, "value", "input %q %s", name, problemOf(in, problem))
			continue
		}
		merged[name] = value
	}
	next := Inputs{Plain: Values{}, Sensitive: Values{}}
	for _, in := range defined {
		value, set := merged[in.Name]
		switch {
		case !set && in.Required && in.Default == nil:
			fail(in.Name, "missing", "input %q is required", in.Name)
		case set && in.Sensitive:
			next.Sensitive[in.Name] = value
		case set:
			next.Plain[in.Name] = value
		}
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b fault.FieldError) int { return cmp.Compare(a.Pointer, b.Pointer) })
		return Inputs{}, fault.With(fault.Newf(fault.ErrInvalid, "the inputs do not match the app"), fault.Code("inputs_invalid"), fault.Fields(faults...))
	}
	return next, nil
}

func problemOf(in appconfig.Input, problem string) string {
	if in.Sensitive {
		return fmt.Sprintf("is not a valid %s", in.Type)
	}
	return problem
}

// sealer closes bytes for a row of an org and opens them again.
type sealer interface {
	Seal(purpose seal.Purpose, plain []byte) ([]byte, error)
	Open(purpose seal.Purpose, sealed []byte) ([]byte, error)
}

// encode turns inputs into what is stored of them.
func (in Inputs) encode(ring sealer, row seal.Purpose) (plain json.RawMessage, sealed []byte, err error) {
	if plain, err = json.Marshal(in.Plain); err != nil {
		return nil, nil, err
	}
	if len(in.Sensitive) == 0 {
		return plain, nil, nil
	}
	raw, err := json.Marshal(in.Sensitive)
	if err != nil {
		return nil, nil, err
	}
	sealed, err = ring.Seal(row, raw)
	return plain, sealed, err
}

// decode is the way back.
func decode(ring sealer, row seal.Purpose, plain json.RawMessage, sealed []byte) (Inputs, error) {
	in := Inputs{Plain: Values{}, Sensitive: Values{}}
	if err := json.Unmarshal(plain, &in.Plain); err != nil {
		return in, fmt.Errorf("decode inputs: %w", err)
	}
	if sealed == nil {
		return in, nil
	}
	raw, err := ring.Open(row, sealed)
	if err != nil {
		return in, fmt.Errorf("open inputs: %w", err)
	}
	if err := json.Unmarshal(raw, &in.Sensitive); err != nil {
		return in, fmt.Errorf("decode sealed inputs") // the cause could quote them
	}
	return in, nil
}
