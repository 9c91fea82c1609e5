// Package remedy knows what a person can do about an error.
package remedy

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/id"
)

// kinds are the things with ids, and how to see them.
var kinds = []struct{ prefix, noun, show, list string }{
	{"app", "app", "berth apps show", "berth apps list"},
	{"arn", "run", "berth logs", "berth actions runs"},
	{"bld", "build", "berth builds show", "berth builds list"},
	{"cfg", "config", "berth configs show", "berth configs list APP"},
	{"chg", "change", "berth changes show", "berth changes list"},
	{"cus", "customer", "berth customers show", "berth customers list"},
	{"ins", "install", "berth installs show", "berth installs list"},
	{"rel", "release", "berth releases show", "berth releases list APP"},
	{"rnr", "runner", "berth runners show", "berth runners list"},
	{"stp", "step", "berth logs", "berth workflows show WORKFLOW"},
	{"str", "log stream", "berth logs", ""},
	{"tok", "token", "", "berth tokens list"},
	{"wfl", "workflow", "berth workflows show", "berth workflows list"},
}

var unknownThing = regexp.MustCompile(`^there is no ([a-z ]+) "(.*)"$`)

// For is what to do about an error, "" when nobody knows.
func For(err error) string {
	var advised interface{ Remedy() string }
	if errors.As(err, &advised) && advised.Remedy() != "" {
		return advised.Remedy()
	}
	var problem *api.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusNotFound {
		return whereItIs(problem.Error())
	}
	return ""
}

// whereItIs helps with "there is no NOUN NAME": by the kind of the id, or by
// the command that lists what exists.
func whereItIs(text string) string {
	found := unknownThing.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	noun, name := found[1], found[2]
	prefix, _, isID := id.Cut(name)
	list := ""
	for _, k := range kinds {
		if isID && k.prefix == prefix && k.noun != noun && k.show != "" {
			return fmt.Sprintf("%s %s (it is the id of a %s)", k.show, name, k.noun)
		}
		if k.noun == noun {
			list = k.list
		}
	}
	if list == "" {
		return ""
	}
	return list + " (shows what there is)"
}

// goesOn is the error of somebody who follows work that does not need them.
type goesOn struct {
	err   error
	again string // the command that follows it
}

// WhileFollowing adds to an error how to keep following, unless the answer
// was that there is nothing to follow.
func WhileFollowing(err error, again string) error {
	var problem *api.Problem
	if err == nil || errors.As(err, &problem) && problem.Status < http.StatusInternalServerError {
		return err
	}
	return goesOn{err, again}
}

// Error implements error.
func (g goesOn) Error() string { return g.err.Error() }

// Unwrap returns the cause.
func (g goesOn) Unwrap() error { return g.err }

// Remedy says how to follow it again.
func (g goesOn) Remedy() string { return g.again + " (the work continues without you)" }
