package names

import (
	"slices"
	"strings"
)

// words are what the line of use of a command calls things.
var words = map[string]Kind{
	"APP": App, "BUILD": Build, "CHANGE": Change, "CONFIG": Config, "CUSTOMER": Customer,
	"INSTALL": Install, "RELEASE": Release, "RUN": Run, "RUNNER": Runner, "WORKFLOW": Workflow,
}

// Kinds are the kinds of a command's arguments by its line of use, such as
// "toggle INSTALL COMPONENT on|off"; "" for what is no thing. A command that
// takes one of several kinds tells them apart itself: it has none.
func Kinds(use string) []Kind {
	var kinds []Kind
	for i, word := range strings.Fields(use) {
		switch {
		case word == "|":
			return nil
		case i > 0:
			kinds = append(kinds, words[strings.Trim(word, "[].")])
		}
	}
	return kinds
}

// OfFlag is the kind of thing that a flag names, "" for all others.
func OfFlag(flag string) Kind {
	switch kind := Kind(flag); kind {
	case App, Config, Customer, Install, Workflow:
		return kind
	}
	return ""
}

// final are the verbs of what cannot be undone.
var final = []string{"delete", "deprovision", "destroy", "forget", "remove", "replace", "revoke", "teardown"}

// IsFinal tells whether a verb does what cannot be undone: it takes whole names
// and ids only.
func IsFinal(verb string) bool { return slices.Contains(final, verb) }
