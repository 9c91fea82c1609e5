package redact

// Hold returns how many bytes at the end of p must wait for what follows them:
// they may be the beginning of a secret, in any form, that goes on behind p, or
// belong to a secret that such a beginning overlaps. 0 means that p can be let
// go as it is.
//
// For callers that keep their own window of a stream: let go of
// Bytes(p[:len(p)-Hold(p)]), keep the rest, and put what comes next behind it.
// Where the caller cuts further in front, it must ask again with the shorter p.
// At the end of the stream nothing needs to be held.
func (s *Set) Hold(p []byte) int {
	auto := s.automaton()
	found, state := auto.find(p)
	from := len(p) - auto.unfinished(state)
	// A secret that is complete but reaches into what is held would be cut in
	// two, and neither half be known for what it is. Stretches lie apart, so at
	// most one does.
	for _, m := range found {
		if m.from < from && from < m.to {
			from = m.from
		}
	}
	return len(p) - from
}

// unfinished is the length of the longest text at the end of what led to state
// that begins a pattern without being all of it.
func (a *automaton) unfinished(state int32) int {
	for state != 0 && a.nodes[state].child == 0 {
		state = a.nodes[state].fail
	}
	return int(a.nodes[state].depth)
}
