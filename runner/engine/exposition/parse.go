package exposition

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Text is what a metrics file says.
type Text struct {
	Metrics []jobspec.Metric
	// Problems are the lines that were left out, without anything that stands there: it
	// may be a secret.
	Problems []string
	// Timed: some numbers had a time, which is not used.
	Timed bool
}

// Parse reads the text.
func Parse(data []byte) Text {
	var t Text
	about := families{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line := strings.Trim(string(line), " \t\r\n")
		switch {
		case line == "":
		case line[0] == '#':
			if !about.comment(line[1:]) {
				t.Problems = append(t.Problems, fmt.Sprintf("line %d: a type is counter, gauge, histogram, summary or untyped", number))
			}
		default:
			m, timed, ok := sample(line)
			if !ok {
				t.Problems = append(t.Problems, fmt.Sprintf("line %d is not in the Prometheus text format", number))
				continue
			}
			t.Metrics, t.Timed = append(t.Metrics, m), t.Timed || timed
		}
	}
	for i := range t.Metrics {
		about.describe(&t.Metrics[i])
	}
	return t
}

// family is what comments say of the metrics with a name.
type family struct{ kind, help string }

type families map[string]family

// comment takes in "HELP name text" and "TYPE name kind"; any other comment says
// nothing. It is false for a kind that is none.
func (f families) comment(text string) bool {
	keyword, rest := word(strings.TrimLeft(text, " \t"))
	if keyword != "HELP" && keyword != "TYPE" {
		return true
	}
	name, rest := word(rest)
	of := f[name]
	if keyword == "HELP" {
		of.help = helpEscape.Replace(rest)
		f[name] = of
		return true
	}
	switch kind := strings.ToLower(strings.TrimSpace(rest)); kind {
	case "counter", "gauge", "histogram", "summary", "untyped":
		of.kind = kind
		f[name] = of
		return true
	}
	return rest == ""
}

var helpEscape = strings.NewReplacer(`\\`, `\`, `\n`, "\n")

// word cuts the first word off, and the blanks behind it.
func word(text string) (first, rest string) {
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], " \t")
}

// describe gives a metric its kind and help. The parts of a histogram or a summary have
// those of the whole.
func (f families) describe(m *jobspec.Metric) {
	m.Kind = jobspec.MetricUntyped
	if of, known := f[m.Name]; known {
		m.Help = of.help
		switch of.kind {
		case "counter":
			m.Kind = jobspec.MetricCounter
		case "gauge", "summary": // of a summary it is a quantile
			m.Kind = jobspec.MetricGauge
		}
		return
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		whole, isPart := strings.CutSuffix(m.Name, part)
		of := f[whole]
		if isPart && (of.kind == "histogram" || of.kind == "summary" && part != "_bucket") {
			m.Kind, m.Help = jobspec.MetricCounter, of.help
		}
	}
}

// sample reads name{label="value",…} value [time]. Duplicate labels are no sample.
func sample(text string) (m jobspec.Metric, timed, ok bool) {
	s := scanner{rest: text}
	m.Name = s.name(true)
	s.blanks()
	if m.Name == "" {
		return m, false, false
	}
	if s.take('{') {
		if m.Labels, ok = s.labels(); !ok {
			return m, false, false
		}
	}
	fields := strings.FieldsFunc(s.rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) != 1 && len(fields) != 2 {
		return m, false, false
	}
	if len(fields) == 2 {
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			return m, false, false
		}
	}
	// Of Go's numbers, those that the format has.
	if strings.ContainsAny(fields[0], "pP_") {
		return m, false, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	m.Value = value
	return m, len(fields) == 2, err == nil
}

// scanner reads a line from its beginning.
type scanner struct{ rest string }

func (s *scanner) blanks() { s.rest = strings.TrimLeft(s.rest, " \t") }

func (s *scanner) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// name reads the name of a metric or a label, "" when there is none.
func (s *scanner) name(colons bool) string {
	end := 0
	for ; end < len(s.rest); end++ {
		c := s.rest[end]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || colons && c == ':'
		if !letter && (end == 0 || c < '0' || c > '9') {
			break
		}
	}
	name := s.rest[:end]
	s.rest = s.rest[end:]
	return name
}

// labels reads what stands behind {, up to and with }. None are nil.
func (s *scanner) labels() (labels map[string]string, ok bool) {
	for {
		s.blanks()
		if s.take('}') {
			return labels, true
		}
		name := s.name(false)
		s.blanks()
		if name == "" || !s.take('=') {
			return nil, false
		}
		s.blanks()
		value, ok := s.quoted()
		if _, twice := labels[name]; !ok || twice {
			return nil, false
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
		s.blanks()
		if !s.take(',') && !strings.HasPrefix(s.rest, "}") {
			return nil, false
		}
	}
}

// quoted reads a text in quotes, in which \\, \" and \n are escapes.
func (s *scanner) quoted() (value string, ok bool) {
	if !s.take('"') {
		return "", false
	}
	var out strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; c {
		case '"':
			s.rest = s.rest[i+1:]
			return out.String(), utf8.ValidString(out.String())
		case '\\':
			i++
			if i == len(s.rest) {
				return "", false
			}
			switch s.rest[i] {
			case '\\', '"':
				out.WriteByte(s.rest[i])
			case 'n':
				out.WriteByte('\n')
			default:
				return "", false
			}
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}
