package redact

import "slices"

// automaton finds all patterns in one pass over the text (Aho-Corasick). It
// does not change once built, so any number of goroutines may use it.
//
// Most nodes of the trie lie on the long tail of one pattern and have a single
// child, so children are a linked list; nodes with many children, always the
// root, have a table of all 256 bytes instead.
type automaton struct {
	nodes  []node
	tables [][256]int32
	names  []string
}

// node is 28 bytes. Links are indexes into nodes; 0, the root, means none.
type node struct {
	child, sibling int32 // first child, next sibling
	fail           int32 // longest proper suffix that is in the trie too
	depth          int32 // length of the text that leads here
	match          int32 // length of the longest pattern that ends here, 0 for none
	name           int32 // of that pattern, index into names
	table          int16 // index into tables plus one; 0 means the list is used
	char           byte  // that leads here
}

// tableFrom is the number of children from which a node gets a table (1 KiB).
const tableFrom = 6

// maxTables keeps tables within their index; nodes beyond keep their list.
const maxTables = 1<<15 - 2

type pattern struct {
	text []byte
	name string
}

func build(patterns []pattern) *automaton {
	a := &automaton{nodes: make([]node, 1), tables: make([][256]int32, 1), names: []string{""}}
	a.nodes[0].table = 1
	for _, p := range patterns {
		a.insert(p)
	}
	a.link()
	return a
}

func (a *automaton) insert(p pattern) {
	at := int32(0)
	for _, c := range p.text {
		next := a.step(at, c)
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{char: c, depth: a.nodes[at].depth + 1, sibling: a.nodes[at].child})
			a.nodes[at].child = next
			a.index(at, c, next)
		}
		at = next
	}
	if a.nodes[at].match == 0 { // the first name of the same text stays
		name := slices.Index(a.names, p.name)
		if name < 0 {
			name = len(a.names)
			a.names = append(a.names, p.name)
		}
		a.nodes[at].match, a.nodes[at].name = int32(len(p.text)), int32(name)
	}
}

// index keeps the table of a node, and makes one when its children get many.
func (a *automaton) index(at int32, c byte, next int32) {
	n := &a.nodes[at]
	if n.table > 0 {
		a.tables[n.table-1][c] = next
		return
	}
	count := 0
	for child := n.child; child != 0; child = a.nodes[child].sibling {
		count++
	}
	if count < tableFrom || len(a.tables) >= maxTables {
		return
	}
	var table [256]int32
	for child := n.child; child != 0; child = a.nodes[child].sibling {
		table[a.nodes[child].char] = child
	}
	a.tables = append(a.tables, table)
	n.table = int16(len(a.tables))
}

// link sets the fail links breadth first, and hands matches of suffixes on to
// nodes without a match of their own. A node's own match is always the longer.
func (a *automaton) link() {
	var queue []int32
	for child := a.nodes[0].child; child != 0; child = a.nodes[child].sibling {
		queue = append(queue, child)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for child := a.nodes[at].child; child != 0; child = a.nodes[child].sibling {
			n := &a.nodes[child]
			n.fail = a.next(a.nodes[at].fail, n.char)
			if suffix := a.nodes[n.fail]; n.match == 0 {
				n.match, n.name = suffix.match, suffix.name
			}
			queue = append(queue, child)
		}
	}
}

// step follows c in the trie; 0 means there is no such child.
func (a *automaton) step(at int32, c byte) int32 {
	n := &a.nodes[at]
	if n.table > 0 {
		return a.tables[n.table-1][c]
	}
	child := n.child
	for child != 0 && a.nodes[child].char != c {
		child = a.nodes[child].sibling
	}
	return child
}

// next is the automaton's move: from one state, over c, to the state for the
// longest suffix of the text so far that begins some pattern.
func (a *automaton) next(at int32, c byte) int32 {
	for {
		if to := a.step(at, c); to != 0 || at == 0 {
			return to
		}
		at = a.nodes[at].fail
	}
}
