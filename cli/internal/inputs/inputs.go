// Package inputs reads values of inputs from flags, files and stdin. Values that
// are secrets never stand among the arguments of a program, which every other
// program of the machine can read.
package inputs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/usage"
)

// maxFile is the largest file of inputs, in bytes.
const maxFile = 8 << 20

// Flags are how values are given.
type Flags struct {
	pairs []string
	file  string
	name  string // of the flag for one value
}

// Add adds the flags: one for single values, with this name, and --input-file.
func (f *Flags) Add(flags *pflag.FlagSet, name, short string) {
	f.name = "--" + name
	flags.StringArrayVarP(&f.pairs, name, short, nil, "an input, name=value; for a secret only its name: you are asked for the value")
	flags.StringVar(&f.file, "input-file", "", "a file of inputs: a JSON object, or lines of name=value; - for stdin")
}

// Values are the inputs that the flags give, by name; nil when no flag was used.
// The file comes first, arguments win. ask asks somebody for a value and does not
// show it; nil when nobody is there. secrets are the names of inputs whose values
// cannot be arguments; it is called only when there are arguments.
func (f *Flags) Values(stdin io.Reader, ask func(name string) (string, error), secrets func() (map[string]bool, error)) (map[string]string, error) {
	if len(f.pairs) == 0 && f.file == "" {
		return nil, nil //nolint:nilnil // nothing was given
	}
	values := map[string]string{}
	if f.file != "" {
		raw, err := readFile(f.file, stdin)
		if err != nil {
			return nil, err
		}
		if values, err = parse(raw, f.file); err != nil {
			return nil, err
		}
	}
	var typed, asked []string
	for _, entry := range f.pairs {
		name, value, ok := strings.Cut(entry, "=")
		switch {
		case name == "":
			return nil, usage.Errorf("%s %q is not NAME=VALUE", f.name, usage.Shortened(entry))
		case ok:
			values[name] = value
			typed = append(typed, name)
		default:
			asked = append(asked, name)
		}
	}
	if err := f.refuse(typed, secrets); err != nil {
		return nil, err
	}
	for _, name := range asked {
		if ask == nil {
			return nil, usage.Errorf("%s %s asks for the value, and this is not a terminal: use --input-file", f.name, usage.Shortened(name))
		}
		var err error
		if values[name], err = ask(name); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// refuse refuses values of secrets among the arguments.
func (f *Flags) refuse(typed []string, secrets func() (map[string]bool, error)) error {
	if len(typed) == 0 {
		return nil
	}
	secret, err := secrets()
	if err != nil {
		return err
	}
	for _, name := range typed {
		if secret[name] {
			name = usage.Shortened(name)
			return usage.Errorf("the value of %s is a secret, and arguments can be read by every program on this machine: use %s %s without a value to be asked for it, or --input-file",
				name, f.name, name)
		}
	}
	return nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage.Error{Err: err}
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = usage.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	return raw, err
}

// parse reads the contents of a file. Its errors show no values.
func parse(raw []byte, file string) (map[string]string, error) {
	if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] == '{' {
		return parseJSON(text, file)
	}
	values := map[string]string{}
	for n, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usage.Errorf("%s:%d: not name=value", file, n+1)
		}
		values[name] = strings.TrimSpace(value)
	}
	return values, nil
}

// parseJSON takes strings as they are, and everything else as its JSON.
func parseJSON(raw []byte, file string) (map[string]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, usage.Errorf("%s is not a JSON object: %v", file, err)
	}
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var text string
		var compact bytes.Buffer
		switch err := json.Unmarshal(object[name], &text); {
		case string(object[name]) == "null":
			return nil, usage.Errorf("%s: %s is null; leave it out, or give it a value", file, usage.Shortened(name))
		case err == nil:
			values[name] = text
		default:
			if err := json.Compact(&compact, object[name]); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			values[name] = compact.String()
		}
	}
	return values, nil
}
