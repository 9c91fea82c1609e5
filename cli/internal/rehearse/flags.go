package rehearse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Flags are those of a rehearsal.
type Flags struct {
	Rehearse bool
	// Stack are "NAME=VALUE"; StackFile and Recorded are paths.
	Stack               []string
	StackFile, Recorded string
}

// Add adds the flags to a command.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.BoolVar(&f.Rehearse, "rehearse", false, "rehearse an app that is written for a cloud: made-up outputs stand in for it (see berth rehearse)")
	f.AddOutputs(set)
}

// AddOutputs adds the flags that name outputs.
func (f *Flags) AddOutputs(set *pflag.FlagSet) {
	set.StringArrayVar(&f.Stack, "stack-output", nil, "an output of the stack, NAME=VALUE; a VALUE that is JSON keeps its type")
	set.StringVar(&f.StackFile, "stack-outputs", "", "JSON file with outputs of the stack")
	set.StringVar(&f.Recorded, "recorded", "", "folder with outputs of a real install: stack.json, sandbox.json, cloud_account.json, components/NAME.json")
}

// Request is what the flags ask the API for; nil without --rehearse. It writes to
// warn which outputs of a file it left out because they are sensitive.
func (f *Flags) Request(warn io.Writer) (*ctlapi.RehearsalRequest, error) {
	if !f.Rehearse {
		if len(f.Stack) > 0 || f.StackFile != "" || f.Recorded != "" {
			return nil, usage.Errorf("--stack-output, --stack-outputs and --recorded need --rehearse")
		}
		return nil, nil
	}
	r := reader{warn: warn}
	var given ctlapi.RehearsalOutputs
	if f.StackFile != "" {
		stack, err := r.file(f.StackFile)
		if err != nil {
			return nil, err
		}
		given.Stack = stack
	}
	for _, pair := range f.Stack {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usage.Errorf("--stack-output %s is not NAME=VALUE", usage.Shortened(pair))
		}
		if given.Stack == nil {
			given.Stack = map[string]any{}
		}
		given.Stack[name] = typed(text)
	}
	request := &ctlapi.RehearsalRequest{Given: &given}
	if f.Recorded == "" {
		return request, nil
	}
	recorded, err := r.folder(f.Recorded)
	request.Recorded = &recorded
	return request, err
}

// typed is a value that is a list, a table, a number or a boolean, or else a text.
// A number with zeros in front, such as the id of an account, stays a text.
func typed(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil || v == nil {
		return text
	}
	if _, isNumber := v.(float64); isNumber && len(text) > len("1000000000") {
		return text // an id rather than a number
	}
	return v
}

// reader reads files with outputs.
type reader struct{ warn io.Writer }

// folder reads what there is in a folder of recorded outputs.
func (r reader) folder(dir string) (ctlapi.RehearsalOutputs, error) {
	var out ctlapi.RehearsalOutputs
	found := false
	for name, to := range map[string]*map[string]any{"stack": &out.Stack, "sandbox": &out.Sandbox, "cloud_account": &out.CloudAccount} {
		values, err := r.file(filepath.Join(dir, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		*to, found = values, true
	}
	components, err := filepath.Glob(filepath.Join(dir, "components", "*.json"))
	if err != nil {
		return out, err
	}
	for _, path := range components {
		values, err := r.file(path)
		if err != nil {
			return out, err
		}
		if out.Components == nil {
			out.Components = map[string]map[string]any{}
		}
		out.Components[strings.TrimSuffix(filepath.Base(path), ".json")] = values
		found = true
	}
	if !found {
		return out, usage.Errorf("there are no recorded outputs in %s: it needs one of stack.json, sandbox.json, cloud_account.json, components/NAME.json", dir)
	}
	return out, nil
}

// maxFile is the largest file with outputs, in bytes.
const maxFile = 4 << 20

// file reads outputs by name: plain, or as `terraform output -json` writes them.
// Sensitive ones are left out, since outputs of a rehearsal are kept in clear.
func (r reader) file(path string) (map[string]any, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&values); err != nil || len(raw) > maxFile {
		return nil, usage.Errorf("%s is no JSON object of outputs, or has more than 4 MiB", path)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, sensitive, ofTerraform := terraformOutput(values[name])
		switch {
		case sensitive:
			delete(values, name)
			fmt.Fprintf(r.warn, "%s: output %s is sensitive and left out; if the app reads it, it is made up\n", path, name)
		case ofTerraform:
			values[name] = value
		}
	}
	return values, nil
}

// terraformOutput tells an output of `terraform output -json` from a plain value.
func terraformOutput(v any) (value any, sensitive, ok bool) {
	m, isMap := v.(map[string]any)
	if !isMap {
		return nil, false, false
	}
	_, hasType := m["type"]
	value, hasValue := m["value"]
	sensitive, hasSensitive := m["sensitive"].(bool)
	if !hasType || !hasValue || !hasSensitive || len(m) > 3 {
		return nil, false, false
	}
	return value, sensitive, true
}
