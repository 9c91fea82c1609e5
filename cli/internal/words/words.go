// Package words knows the words that fingers type out of habit with other tools,
// and what they are called here.
package words

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Meaning is what a word means.
type Meaning struct {
	// Command is the command line that does it; nil when Berth only answers.
	Command []string
	// Answer is for the person, when there is no command that does just that.
	Answer string
}

// same are words for commands that have another name.
var same = map[string][]string{
	"cancel":    {"workflows", "cancel"},
	"fmt":       {"apps", "fmt"},
	"graph":     {"apps", "graph"},
	"health":    {"installs", "health"},
	"init":      {"apps", "init"},
	"inputs":    {"installs", "inputs"},
	"lint":      {"apps", "lint"},
	"list":      {"status"},
	"ls":        {"status"},
	"plan":      {"deploy", "--plan"},
	"provision": {"installs", "provision"},
	"ps":        {"status"},
	"reject":    {"deny"},
	"render":    {"apps", "render"},
	"run":       {"actions", "run"},
	"schema":    {"apps", "schema"},
	"set":       {"installs", "set"},
	"show":      {"installs", "show"},
	"toggle":    {"installs", "toggle"},
	"validate":  {"apps", "validate"},
	"variables": {"apps", "variables"},
	"watch":     {"workflows", "watch"},
	"whoami":    {"context", "show"},
}

// removal is the answer to every word for removing an install.
const removal = "berth installs deprovision INSTALL removes everything that an install runs; berth installs forget INSTALL then deletes its record"

// answers are for words that no command stands for.
var answers = map[string]string{
	"apply":      "berth deploy INSTALL --watch plans each change, asks you, and applies what you approved",
	"components": "berth installs resources INSTALL shows the components of an install, berth apps graph the ones of an app folder",
	"create":     "create what? berth installs create NAME, berth apps create NAME, berth customers create NAME",
	"delete": "delete what? berth installs deprovision INSTALL removes everything that an install runs, berth installs forget INSTALL then its record, " +
		"berth apps delete APP an app",
	"deprovision": removal,
	"destroy":     removal,
	"exec":        "not yet: Berth opens no shell in an install; berth actions run-script INSTALL FILE runs a script there",
	"login":       "berth ui logs your browser in; berth context add NAME --url URL reads a token from stdin and keeps it, berth up writes a context itself",
	"open":        "berth ui opens the dashboard; berth status INSTALL and berth why INSTALL show how an install is",
	"pause":       "berth installs pause INSTALL --reason TEXT has no change carried out; the customer has a pause too: berth-runner --data DIR pause --reason TEXT",
	"remove":      removal,
	"resume":      "berth installs resume INSTALL ends your pause; the customer ends theirs with berth-runner --data DIR resume",
	"rm":          removal,
	"secrets":     "berth installs inputs INSTALL --set NAME asks for the value of a sensitive input; berth apps variables set APP NAME reads a secret of the app",
	"teardown":    "berth installs teardown INSTALL COMPONENT removes a component; " + removal,
	"uninstall":   removal,
	"update":      "berth sync makes a release of an app folder; berth deploy INSTALL brings an install to it",
	"upgrade":     "berth sync makes a release of an app folder; berth deploy INSTALL brings an install to it",
}

// Known are all words, sorted.
func Known() []string {
	all := append(slices.Collect(maps.Keys(same)), slices.Collect(maps.Keys(answers))...)
	return slices.Sorted(slices.Values(append(all, "describe", "get")))
}

// Of tells what a word means with what follows it. Nouns are the commands that
// have "list" and "show", by each of their names.
func Of(word string, rest []string, nouns map[string]string) Meaning {
	switch {
	case same[word] != nil:
		return Meaning{Command: append(slices.Clone(same[word]), rest...)}
	case word == "get" || word == "describe":
		return show(word, rest, nouns)
	}
	return Meaning{Answer: answers[word]}
}

// takesValue are the flags of all commands that stand before their value.
var takesValue = []string{"-o", "--output", "--json", "--context", "--org", "--limit", "-l", "--label", "--app", "--install", "--state"}

// within are nouns that are listed of something: releases list APP.
var within = []string{"actions", "configs", "releases"}

// show is "get installs", "get install acme" or "describe acme": a noun and a
// name, or a name alone, with flags wherever they stand.
func show(word string, rest []string, nouns map[string]string) Meaning {
	var typed, flags []string
	for i := 0; i < len(rest); i++ {
		switch {
		case !strings.HasPrefix(rest[i], "-"):
			typed = append(typed, rest[i])
		case slices.Contains(takesValue, rest[i]) && i+1 < len(rest):
			flags = append(flags, rest[i], rest[i+1])
			i++
		default:
			flags = append(flags, rest[i])
		}
	}
	if len(typed) == 0 {
		if len(flags) > 0 { // --help
			return Meaning{Command: append([]string{"installs", "show"}, flags...)}
		}
		return Meaning{Answer: word + " what? berth installs list, berth installs show INSTALL, and the same of apps, releases, changes, …"}
	}
	first := typed[0]
	if noun, name, ok := strings.Cut(first, "/"); ok && nouns[noun] != "" { // install/acme
		typed = append([]string{noun, name}, typed[1:]...)
		first = noun
	}
	noun := nouns[first]
	verb := "show"
	switch {
	case noun == "" || word != "get":
	case len(typed) == 1, slices.Contains(within, noun) && len(typed) == 2 && !strings.ContainsAny(typed[1], "@_"):
		verb = "list"
	}
	if noun != "" {
		typed = typed[1:]
	}
	return Meaning{Command: slices.Concat([]string{cmp.Or(noun, "installs"), verb}, typed, flags)}
}
