package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const (
	// maxEntryBytes bounds what the index of a repository says of one chart: some
	// thousand versions. All of it is parsed at once, unlike the rest of an index.
	maxEntryBytes = 4 << 20

	// maxLineBytes bounds a line of an index: some have pictures in them.
	maxLineBytes = 4 << 20
)

// chartVersion is a version of a chart in the index of its repository.
type chartVersion struct {
	Version string   `yaml:"version" json:"version"`
	Digest  string   `yaml:"digest" json:"digest"` // sha256 of the packed chart, in hex
	URLs    []string `yaml:"urls" json:"urls"`
}

var errIndex = errors.New("chart repository: not an index")

// readIndex reads what the index of a repository says of one chart; nothing when
// it has none. An index may have tens of MiB, so that only the part about the
// chart is parsed: YAML as Helm writes it, or JSON.
func readIndex(in io.Reader, name string) ([]chartVersion, error) {
	r := bufio.NewReader(in)
	for {
		first, err := r.ReadByte()
		switch {
		case err != nil:
			return nil, noIndex(err)
		case unicode.IsSpace(rune(first)):
			continue
		}
		if err := r.UnreadByte(); err != nil {
			return nil, err
		}
		if first == '{' {
			return readJSONIndex(r, name)
		}
		return readYAMLIndex(r, name)
	}
}

// noIndex tells an index that ends too early from a connection that does.
func noIndex(err error) error {
	if errors.Is(err, io.EOF) {
		return errIndex
	}
	return err
}

// readYAMLIndex cuts the lines about the chart out of the index.
func readYAMLIndex(r io.Reader, name string) ([]chartVersion, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	var entry bytes.Buffer
	inEntries, isIndex, mine, indent := false, false, false, -1
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimLeft(line, " ")
		depth := len(line) - len(text)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case depth == 0 && !strings.HasPrefix(text, "-"):
			inEntries, mine = strings.HasPrefix(text, "entries:"), false
			isIndex = isIndex || inEntries
			continue
		case !inEntries:
			continue
		case indent < 0:
			indent = depth
		}
		if inEntries && depth == indent && text != "" && !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "#") {
			mine = isKey(text, name)
		}
		if !mine {
			continue
		}
		if entry.Len()+len(line) > maxEntryBytes {
			return nil, errTooLarge
		}
		entry.WriteString(line + "\n")
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, errTooLarge
	} else if err != nil {
		return nil, err
	}
	if !isIndex {
		return nil, errIndex
	}
	var charts map[string][]chartVersion
	if err := yaml.Unmarshal(entry.Bytes(), &charts); err != nil {
		return nil, fmt.Errorf("%w: %w", errIndex, err)
	}
	return charts[name], nil
}

// isKey tells a line that begins what is said of a chart.
func isKey(text, name string) bool {
	for _, written := range []string{name, `"` + name + `"`, "'" + name + "'"} {
		if rest, ok := strings.CutPrefix(text, written); ok && strings.HasPrefix(rest, ":") {
			return true
		}
	}
	return false
}

func readJSONIndex(r io.Reader, name string) ([]chartVersion, error) {
	in := json.NewDecoder(r)
	if _, err := in.Token(); err != nil { // its "{"
		return nil, noIndex(err)
	}
	var found []chartVersion
	isIndex := false
	err := eachKey(in, func(key string) error {
		if key != "entries" {
			return skip(in)
		}
		isIndex = true
		if open, err := in.Token(); err != nil || open != json.Delim('{') {
			return errors.Join(errIndex, err)
		}
		if err := eachKey(in, func(chart string) error {
			if chart == name {
				return in.Decode(&found)
			}
			return skip(in)
		}); err != nil {
			return err
		}
		_, err := in.Token() // its "}"
		return err
	})
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		err = fmt.Errorf("%w: %w", errIndex, syntax)
	}
	if err == nil && !isIndex {
		err = errIndex
	}
	return found, err
}

// eachKey goes through an object that is open, up to its "}".
func eachKey(in *json.Decoder, do func(key string) error) error {
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return noIndex(err)
		}
		if err := do(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	return nil
}

// skip reads over one value, of which no more than a token is held.
func skip(in *json.Decoder) error {
	for depth := 0; ; {
		token, err := in.Token()
		if err != nil {
			return noIndex(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
