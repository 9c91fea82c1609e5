package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/scriptfile"
)

const (
	maxOutputBytes = 256 << 10 // of a step's output file
	maxOutputs     = 256       // names of a step
)

var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`)

// readOutputs reads the file that a script wrote its outputs to.
func readOutputs(path string) (map[string]any, error) {
	data, err := scriptfile.Read(path, maxOutputBytes)
	if errors.As(err, new(scriptfile.TooLargeError)) || errors.Is(err, scriptfile.ErrNotRegular) {
		return nil, fmt.Errorf("the file %w", err)
	}
	if err != nil {
		return nil, err
	}
	return parseOutputs(data)
}

// parseOutputs reads a JSON object, or lines that are each name=value or a JSON
// object. What comes later wins. Errors tell the line, not what is in it.
func parseOutputs(data []byte) (map[string]any, error) {
	outputs := map[string]any{}
	if whole, ok := object(data); ok {
		outputs = whole
	} else {
		number := 0
		for line := range bytes.Lines(data) {
			number++
			line = bytes.TrimRight(line, "\r\n")
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if values, ok := object(line); ok {
				for name, v := range values {
					outputs[name] = v
				}
				continue
			}
			name, value, ok := bytes.Cut(line, []byte("="))
			name = bytes.TrimSpace(name)
			if !ok || !outputName.Match(name) {
				return nil, fmt.Errorf("line %d is neither name=value nor a JSON object", number)
			}
			outputs[string(name)] = string(bytes.ToValidUTF8(value, []byte("\uFFFD")))
		}
	}
	if len(outputs) > maxOutputs {
		return nil, fmt.Errorf("there are %d of them, at most %d are kept", len(outputs), maxOutputs)
	}
	for name := range outputs {
		if !outputName.MatchString(name) {
			return nil, fmt.Errorf("a name of %d characters is not accepted: letters, digits, _, . and - are", len(name))
		}
	}
	return outputs, nil
}

// object reads data that is one JSON object and nothing else.
func object(data []byte) (map[string]any, bool) {
	trimmed := bytes.TrimSpace(data)
	if !bytes.HasPrefix(trimmed, []byte("{")) || !json.Valid(trimmed) {
		return nil, false
	}
	v, err := job.Decode(trimmed)
	if err != nil {
		return nil, false
	}
	m, ok := v.(map[string]any)
	return m, ok
}
