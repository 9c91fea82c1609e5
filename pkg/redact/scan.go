package redact

// match is a stretch of a text to be replaced.
type match struct {
	from, to int
	name     int32
	longest  int // length of the pattern that gave the name
}

// find returns the stretches of text to replace, in order and with overlapping
// ones as one, and the state at its end.
func (a *automaton) find(text []byte) (found []match, state int32) {
	root := &a.tables[0]
	for i, c := range text {
		if state == 0 {
			if state = root[c]; state == 0 {
				continue
			}
		} else {
			state = a.next(state, c)
		}
		n := &a.nodes[state]
		if n.match == 0 {
			continue
		}
		m := match{from: i + 1 - int(n.match), to: i + 1, name: n.name, longest: int(n.match)}
		for len(found) > 0 && found[len(found)-1].to > m.from {
			last := found[len(found)-1]
			m.from = min(m.from, last.from)
			if last.longest >= m.longest {
				m.name, m.longest = last.name, last.longest
			}
			found = found[:len(found)-1]
		}
		found = append(found, m)
	}
	return found, state
}

// replace returns a copy of text with all that is found replaced.
func (a *automaton) replace(text []byte) []byte {
	out := make([]byte, 0, len(text))
	found, _ := a.find(text)
	at := 0
	for _, m := range found {
		out = append(out, text[at:m.from]...)
		out = append(out, replacement(a.names[m.name])...)
		at = m.to
	}
	return append(out, text[at:]...)
}

func replacement(name string) string {
	if name == "" {
		return "(redacted)"
	}
	return "(redacted:" + name + ")"
}
