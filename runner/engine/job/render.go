package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// State is what templates read.
func (j *Job) State() (interpolate.State, error) {
	if j.state != nil {
		return j.state, nil
	}
	tree := map[string]any{}
	if len(j.Spec.State) > 0 {
		decoded, err := Decode(j.Spec.State)
		if err != nil {
			return nil, fmt.Errorf("read the state tree: %w", err)
		}
		if decoded != nil {
			var ok bool
			if tree, ok = decoded.(map[string]any); !ok {
				return nil, errors.New("read the state tree: it is not an object")
			}
		}
	}
	j.state = interpolate.NewState(tree)
	if j.Spec.Action != nil {
		j.state = j.state.WithActionInputs(j.Spec.Action.Inputs)
	}
	return j.state, nil
}

// Render renders a string of the order; what names its key, for errors. They
// name files of the app folder and paths of the state, never values.
func (j *Job) Render(what, src string) (string, error) { return j.RenderFile(what, "", src) }

// RenderFile is Render for what stands in a file of its own, "" for none.
func (j *Job) RenderFile(what, file, src string) (string, error) {
	state, err := j.State()
	if err != nil {
		return "", err
	}
	if file == "" {
		file = what
		if in := j.definedIn(); in != "" {
			file = in + ": " + what
		}
	}
	out, err := interpolate.Render(src, state, interpolate.Options{Now: j.StartedAt, File: file})
	if err != nil {
		f := Wrongf("", "%v", err)
		if e, ok := errors.AsType[*interpolate.Error](err); ok && e.NearestPath != "" {
			f.Remedy = fmt.Sprintf("did you mean %s?", e.NearestPath)
		} else if ok && e.Missing != "" {
			f.Remedy = "check the name, and that what makes it is deployed"
		}
		return "", f
	}
	return out, nil
}

// definedIn is the file of the app folder that the order comes from, "" when it
// does not say.
func (j *Job) definedIn() string {
	if j.Spec.Action != nil {
		return j.Spec.Action.File
	}
	return j.Spec.File
}

// NameOf is the i-th of the names of an order's files, "" when there is none:
// orders of older control planes have no names.
func NameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}

// RenderTree renders all strings inside a value of the order.
func (j *Job) RenderTree(what string, v any) (any, error) {
	switch v := v.(type) {
	case string:
		return j.Render(what, v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			rendered, err := j.RenderTree(fmt.Sprintf("%s[%d]", what, i), item)
			if err != nil {
				return nil, err
			}
			out[i] = rendered
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			rendered, err := j.RenderTree(what+"."+key, item)
			if err != nil {
				return nil, err
			}
			out[key] = rendered
		}
		return out, nil
	default:
		return v, nil
	}
}

// RenderEnv renders the values of environment variables.
func (j *Job) RenderEnv(what string, vars map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(vars))
	for name, src := range vars {
		rendered, err := j.Render(what+"."+name, src)
		if err != nil {
			return nil, err
		}
		out[name] = rendered
	}
	return out, nil
}

// onePath is a template that is nothing but a path of the tree.
var onePath = regexp.MustCompile(`^\s*\{\{-?\s*(\.(?:nuon|berth)(?:\.\w+)+)\s*-?\}\}\s*$`)

// RenderValue renders a template that is nothing but a path to the value at
// that path: a list stays a list, where text would be "[a b]". ok is false for
// every other string.
func (j *Job) RenderValue(what, src string) (v any, ok bool, err error) {
	m := onePath.FindStringSubmatch(src)
	if m == nil {
		return nil, false, nil
	}
	encoded, err := j.Render(what, "{{ toJson "+m[1]+" }}")
	if err != nil {
		return nil, true, err
	}
	v, err = Decode(json.RawMessage(encoded))
	return v, true, err
}
