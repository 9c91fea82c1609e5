package names

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// Unknown is the error when nothing is called as typed.
type Unknown struct {
	What string // the whole sentence
	Near string // what was probably meant, "" when nothing is close
	List string // the command that shows what there is, "" when there is none
}

// Error implements error.
func (u *Unknown) Error() string {
	if u.Near == "" {
		return u.What
	}
	return u.What + "; did you mean " + u.Near + "?"
}

// Remedy says where to look.
func (u *Unknown) Remedy() string {
	if u.List == "" || u.Near != "" {
		return ""
	}
	return u.List + " (shows what there is)"
}

// unknown is the error for a name or id of a kind.
func unknown(kind Kind, typed, near string) error {
	return &Unknown{What: fmt.Sprintf("there is no %s %q", kind, usage.Shortened(typed)), Near: near, List: lists[kind]}
}

// lists are the commands that show what there is of a kind.
var lists = map[Kind]string{
	App: "berth apps list", Build: "berth builds list", Change: "berth changes list", Config: "berth configs list APP",
	Customer: "berth customers list", Install: "berth installs list", Release: "berth releases list APP", Run: "berth actions runs",
	Runner: "berth runners list", Workflow: "berth workflows list",
}

// ambiguous is the error when what was typed fits several things: it lists them.
func ambiguous(typed string, several []Thing) error {
	lines := make([]string, len(several))
	for i, thing := range several {
		lines[i] = strings.TrimRight(thing.ID+"  "+thing.About, " ")
	}
	return usage.Errorf("%q can mean any of these; name one by its id:\n%s", usage.Shortened(typed), strings.Join(lines, "\n"))
}

// outcome turns a result into the id of the one thing, or an error.
func (b Book) outcome(kind Kind, typed string, r Result) (string, error) {
	switch {
	case len(r.Several) > 0:
		return "", ambiguous(typed, r.Several)
	case !r.Found:
		return "", unknown(kind, typed, r.Near)
	case r.Short && b.Exact:
		return "", usage.Errorf("%q is only the beginning of an id, which is too little for something that cannot be undone; write %s",
			typed, strings.Join(append(r.One.Names, r.One.ID), " or "))
	}
	return r.One.ID, nil
}

// notThere is how the control plane says that a name is unknown.
var notThere = regexp.MustCompile(`^there is no ([a-z]+) "(.*)"$`)

// Explain adds to the control plane's answer that there is nothing of a name what
// was probably meant. All other errors stay as they are.
func (b Book) Explain(ctx context.Context, err error) error {
	var problem *api.Problem
	if !IsMissing(err) || !errors.As(err, &problem) {
		return err
	}
	found := notThere.FindStringSubmatch(problem.Error())
	if found == nil {
		return err
	}
	kind, typed := Kind(found[1]), found[2]
	if app, number, ok := strings.Cut(typed, "@"); ok && kind == Release && isNumber(number) {
		return b.explainRelease(ctx, err, app, number)
	}
	if isID(typed) || problem.Remedy() != "" {
		return err
	}
	things, failed := b.all(ctx, kind)
	if near := nearest(typed, things); failed == nil && near != "" {
		return unknown(kind, typed, near)
	}
	return err
}

// explainRelease says which the newest release is.
func (b Book) explainRelease(ctx context.Context, err error, app, number string) error {
	newest, failed := b.Client.Releases(ctx, 1, app)
	switch {
	case IsMissing(failed):
		return b.Explain(ctx, failed) // it is the app that is not there
	case failed != nil:
		return err
	case len(newest) == 0:
		return &Unknown{What: fmt.Sprintf("app %s has no release yet", app)}
	}
	return &Unknown{
		What: fmt.Sprintf("app %s has no release %s; its newest is %d", app, number, newest[0].Number), List: "berth releases list " + app,
	}
}
