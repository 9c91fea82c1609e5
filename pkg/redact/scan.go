package redact

// scanner carries the state of one stream through an automaton. What it holds
// back is never more than the longest form, and only bytes that begin one.
type scanner struct {
	auto  *automaton
	state int32
	held  []byte // not let go yet; begins in the stream at offset start
	start int64
	// pending are stretches to replace that lie in held, in order.
	pending []match
	// cover is the end, as offset in the stream, of the stretch that was last
	// replaced. Bytes before it are dropped; a match that begins before it
	// makes it longer.
	cover int64
}

// match is a stretch of the stream to be replaced.
type match struct {
	from, to int64
	name     int32
	longest  int64 // length of the match that gave the name
}

// feed takes the next bytes of the stream and appends to out what may be seen.
func (s *scanner) feed(out, p []byte) []byte {
	held := len(s.held)
	s.held = append(s.held, p...)
	s.scan(held)
	return s.emit(out, s.safe())
}

// flush lets go of all that is held: no more bytes follow.
func (s *scanner) flush(out []byte) []byte {
	out = s.emit(out, s.start+int64(len(s.held)))
	s.state = 0
	return out
}

// flushTo lets go of the first n held bytes and looks at the rest as if the
// stream began there.
func (s *scanner) flushTo(out []byte, n int) []byte {
	out = s.emit(out, s.start+int64(n))
	s.rescan()
	return s.emit(out, s.safe())
}

// swap continues with another automaton. It scans the held bytes again, so that
// it finds a newly known secret from there on.
func (s *scanner) swap(out []byte, a *automaton) []byte {
	if s.auto == a {
		return out
	}
	s.auto = a
	s.rescan()
	return s.emit(out, s.safe())
}

func (s *scanner) rescan() {
	s.state, s.pending = 0, s.pending[:0]
	s.scan(0)
}

// safe is the offset before which no later match can begin: whatever begins a
// form at the end of the stream lies behind it.
func (s *scanner) safe() int64 {
	return s.start + int64(len(s.held)) - int64(s.auto.nodes[s.state].depth)
}

// scan moves the state over held[from:] and adds the stretches to replace to
// pending, overlapping ones as one.
func (s *scanner) scan(from int) {
	found := s.pending
	a, state := s.auto, s.state
	root := &a.tables[0]
	for i := from; i < len(s.held); i++ {
		c := s.held[i]
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
		end := s.start + int64(i) + 1
		m := match{from: end - int64(n.match), to: end, name: n.name, longest: int64(n.match)}
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
	s.state, s.pending = state, found
}

// emit lets go of the stream up to offset safe. A stretch that reaches over
// safe is replaced at once and its rest dropped as it comes; one that begins
// at or behind it stays pending, since it may become part of a longer one.
func (s *scanner) emit(out []byte, safe int64) []byte {
	at := s.start
	show := func(to int64) { // bytes up to the offset to, without those under cover
		if from := max(at, min(s.cover, to)); from < to {
			out = append(out, s.held[from-s.start:to-s.start]...)
		}
		at = max(at, to)
	}
	done := 0
	for _, m := range s.pending {
		if m.from >= safe {
			break
		}
		done++
		show(m.from)
		if m.from >= s.cover {
			out = append(out, replacement(s.auto.names[m.name])...)
		}
		s.cover = max(s.cover, m.to)
		at = max(at, min(m.to, safe))
	}
	show(safe)
	s.pending = append(s.pending[:0], s.pending[done:]...)
	s.held = append(s.held[:0], s.held[safe-s.start:]...)
	s.start = safe
	return out
}

func replacement(name string) string {
	if name == "" {
		return "(redacted)"
	}
	return "(redacted:" + name + ")"
}
