// Package exampletest reads examples the way a shell would, for tests that hold
// them to the commands.
package exampletest

import (
	"slices"
	"strings"
)

// Typed splits an example into the words that each berth of it gets, as a shell
// would: what it is piped to, read from and written to is left out.
func Typed(line string) [][]string {
	var (
		all    [][]string
		words  []string
		word   strings.Builder
		inWord bool
		quote  rune
		skip   bool // the next word is a file
	)
	end := func() {
		if inWord && !skip {
			words = append(words, word.String())
		}
		skip = skip && !inWord
		word.Reset()
		inWord = false
	}
	command := func() {
		end()
		if i := slices.Index(words, "berth"); i >= 0 && !slices.ContainsFunc(words[:i], notSet) {
			all = append(all, words[i+1:])
		}
		words = nil
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			end()
		case r == '|' || r == '&' || r == ';':
			command()
		case r == '<' || r == '>':
			end()
			skip = true
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	command()
	return all
}

// notSet tells whether a word before a command is anything but a variable for it.
func notSet(word string) bool { return !strings.Contains(word, "=") }
