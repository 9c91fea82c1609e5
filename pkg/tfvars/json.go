package tfvars

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// member is one name and value of a JSON object. Names may repeat: Terraform
// takes each.
type member struct {
	name  string
	value json.RawMessage
	line  int // of the name, from 1
}

// members takes a JSON object apart; false when it is none, or has more members
// than a module can have variables.
func members(source string) (all []member, ok bool) {
	source = strings.TrimPrefix(source, byteOrderMark)
	d := json.NewDecoder(strings.NewReader(source))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	line, counted := 1, int64(0)
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		if err != nil || !isName || len(all) == MaxVariables {
			return nil, false
		}
		line += strings.Count(source[counted:d.InputOffset()], "\n")
		counted = d.InputOffset()
		m := member{name: name, line: line}
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return all, err == io.EOF
}

// tables lists the objects of a block: one, or a list of them. Anything else is
// none, and clears whole.
func tables(value json.RawMessage, whole *bool) [][]member {
	items := []json.RawMessage{value}
	if bytes.HasPrefix(value, []byte("[")) {
		items = nil
		if json.Unmarshal(value, &items) != nil {
			*whole = false
			return nil
		}
	}
	var all [][]member
	for _, item := range items {
		one, ok := members(string(item))
		if !ok {
			*whole = false
			continue
		}
		all = append(all, one)
	}
	return all
}
