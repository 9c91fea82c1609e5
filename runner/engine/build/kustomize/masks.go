package kustomize

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// masks are the templates of all files that were read, by the word that stands
// for each. The word is made of the template, so that the same source gives the
// same names of generated ConfigMaps. It says how the template was quoted, since
// {{.x}} may be the number 3 and "{{.x}}" is the string "3".
type masks map[string]string

// word is what stands for a template: letters and digits, as every name in
// Kubernetes may have, and never a number.
var word = regexp.MustCompile(`berth[dsp][0-9a-f]{16}x`)

// quote is how the value that a template is in was written.
type quote byte

const (
	double quote = 'd'
	single quote = 's'
	plain  quote = 'p' // and block scalars
)

// hide replaces the templates of a text by words.
func (m masks) hide(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var out strings.Builder
	var q quotes
	for text != "" {
		start := strings.Index(text, "{{")
		if start < 0 {
			break
		}
		end := start + templateEnd(text[start:])
		if end == start {
			break
		}
		q.read(text[:start])
		out.WriteString(text[:start])
		sum := sha256.Sum256([]byte(text[start:end]))
		name := "berth" + string(q.now()) + hex.EncodeToString(sum[:8]) + "x"
		m[name] = text[start:end]
		out.WriteString(name)
		q.before = 'x'
		text = text[end:]
	}
	out.WriteString(text)
	return out.String()
}

// templateEnd is where the template that a text begins with ends: behind the
// first }} that is in no string of it. 0 when it does not end.
func templateEnd(text string) int {
	if strings.HasPrefix(text, "{{/*") || strings.HasPrefix(text, "{{- /*") {
		if i := strings.Index(text, "*/"); i >= 0 {
			if j := strings.Index(text[i:], "}}"); j >= 0 {
				return i + j + 2
			}
		}
		return 0
	}
	in := byte(0)
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case in != 0 && in != '`' && c == '\\':
			i++
		case in != 0 && c == in:
			in = 0
		case in != 0:
		case c == '"' || c == '`' || c == '\'':
			in = c
		case strings.HasPrefix(text[i:], "}}"):
			return i + len("}}")
		}
	}
	// A string that is not closed belongs to another language.
	if i := strings.Index(text, "}}"); i >= 0 {
		return i + len("}}")
	}
	return 0
}

// quotes follows a line of YAML and tells in which quotes its end is.
type quotes struct {
	open   byte // the quote, 0 for none
	before byte // the character before, 0 at the beginning of a line
}

func (q *quotes) read(text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			*q = quotes{}
			continue
		case q.open == '"' && c == '\\':
			i++
		case q.open != 0 && c == q.open:
			q.open = 0
		case q.open == 0 && (c == '"' || c == '\'') && strings.IndexByte("\x00 \t[{,", q.before) >= 0:
			q.open = c
		}
		q.before = c
	}
}

func (q *quotes) now() quote {
	switch q.open {
	case '"':
		return double
	case '\'':
		return single
	}
	return plain
}

// restore puts the templates back into what kustomize made. A value keeps the
// quotes that its template had. A Secret whose encoded data hold a template says
// it as stringData instead.
func (m masks) restore(manifest []byte) ([]byte, error) {
	if len(m) == 0 {
		return manifest, nil
	}
	var out bytes.Buffer
	in, to := yaml.NewDecoder(bytes.NewReader(manifest)), yaml.NewEncoder(&out)
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(doc.Content) == 1 {
			m.decodeSecret(doc.Content[0])
		}
		m.style(&doc, false)
		if err := to.Encode(&doc); err != nil {
			return nil, err
		}
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return []byte(m.put(out.String())), nil
}

// put is a text with the templates that its words stand for.
func (m masks) put(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if template, ok := m[w]; ok {
			return template
		}
		return w
	})
}

// ofStrings are the tables whose values are strings in every object: what
// generators and kustomize's own keys put there had no quotes to keep.
var ofStrings = []string{"data", "stringData", "labels", "annotations", "matchLabels", "nodeSelector"}

// style gives values the quotes of their templates. text says that the values of
// n are strings in any case.
func (m masks) style(n *yaml.Node, text bool) {
	for i, below := range n.Content {
		isValue := n.Kind == yaml.MappingNode && i%2 == 1
		if isValue && below.Kind == yaml.ScalarNode && text && below.Style == 0 && word.MatchString(below.Value) {
			below.Style = yaml.DoubleQuotedStyle
		}
		m.style(below, isValue && slices.Contains(ofStrings, n.Content[i-1].Value))
	}
	if n.Kind != yaml.ScalarNode {
		return
	}
	for _, w := range word.FindAllString(n.Value, -1) {
		switch quote(w[len("berth")]) {
		case double:
			n.Style = yaml.DoubleQuotedStyle
		case single:
			n.Style = yaml.SingleQuotedStyle
		}
		if strings.Contains(n.Value, "\n") {
			n.Style = yaml.LiteralStyle
		}
	}
}

// decodeSecret moves the data of a Secret that hold a template to stringData.
func (m masks) decodeSecret(object *yaml.Node) {
	if field(object, "kind") == nil || field(object, "kind").Value != "Secret" {
		return
	}
	data := field(object, "data")
	if data == nil || data.Kind != yaml.MappingNode {
		return
	}
	var kept, moved []*yaml.Node
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i], data.Content[i+1]
		clear, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value.Value), ""))
		if err != nil || !word.Match(clear) {
			kept = append(kept, key, value)
			continue
		}
		moved = append(moved, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(clear), Style: yaml.DoubleQuotedStyle})
	}
	if len(moved) == 0 {
		return
	}
	data.Content = kept
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "stringData"}
	if have := field(object, "stringData"); have != nil {
		have.Content = append(have.Content, moved...)
		return
	}
	object.Content = append(object.Content, name, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: moved})
}

// field is a value of a mapping; nil when it is not there.
func field(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
