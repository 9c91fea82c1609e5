package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Explain turns an error of the API server into a failure of one line that says
// what to do. What was tried is named as an infinitive: "read Deployment/web". A
// failure stays as it is.
func Explain(err error, doing string) error {
	if _, ok := errors.AsType[*job.Failure](err); ok || err == nil {
		return err
	}
	remedy := ""
	_, unreachable := errors.AsType[*net.OpError](err)
	switch {
	case apierrors.IsForbidden(err):
		remedy = "give the runner's account in the cluster that right"
	case apierrors.IsUnauthorized(err):
		remedy = "the runner's kubeconfig is not, or no longer, accepted: give it a new one"
	case unreachable, errors.Is(err, context.DeadlineExceeded), apierrors.IsServiceUnavailable(err):
		remedy = "check that the cluster is up and that the runner reaches it"
	case IsUnknownKind(err):
		remedy = "check apiVersion and kind, and that what installs its CRD is deployed before"
	}
	f := job.Failf(remedy, "%s: %s", doing, Said(err))
	if NeedsChange(err) {
		f.Reason = jobspec.ReasonNeedsChange
	}
	return f
}

// Refusal is a failure about the one object that was sent: others may be refused
// too, and it is of use to hear of all.
type Refusal struct{ *job.Failure }

func (r *Refusal) Unwrap() error { return r.Failure }

// MarkRefusal makes of an explained error a Refusal, if that is what err was.
func MarkRefusal(explained, err error) error {
	f, ok := errors.AsType[*job.Failure](explained)
	_, isStatus := errors.AsType[*apierrors.StatusError](err)
	refused := isStatus && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)) || IsUnknownKind(err)
	if !ok || !refused {
		return explained
	}
	return &Refusal{f}
}

// Said is what the API server says, as a person reads it: in one line, a field
// with its fault, without whole structures, and without any value of a
// Secret.
func Said(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return line(err.Error())
	}
	details := status.Status().Details
	var faults []string
	for _, cause := range details.Causes {
		fault := cause.Field
		switch {
		case details.Kind == "Secret": // the server repeats the values that it does not like
		case fault == "" || fault == "<nil>":
			fault = readable(cause.Message)
		default:
			fault += ": " + readable(cause.Message)
		}
		faults = append(faults, fault)
	}
	return "the cluster finds it invalid: " + strings.Join(faults, "; ")
}

var (
	// structure is a value that the server prints whole, as JSON or as Go would:
	// nobody can read it.
	structure = regexp.MustCompile(`^(Invalid|Unsupported|Duplicate) value: ([a-zA-Z0-9_.*&\[\]]*\{.*\}|map\[.*\]|\[\]byte\(.*\)): `)
	// example ends what the server says of a name that it does not like.
	example = regexp.MustCompile(` \(e\.g\. .*\)$`)
)

func readable(message string) string {
	return example.ReplaceAllString(structure.ReplaceAllString(line(message), ""), "")
}

func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// All is one failure that names every one of several, with the remedy of the
// first; nil for none. Those that are too many for a line are counted. One that
// comes again makes all of it come again.
func All(failures []*job.Failure) error {
	const shown = 8
	var first *job.Failure
	var said []string
	var reason jobspec.Reason
	more := 0
	for _, f := range failures {
		if f != nil && f.Reason != "" {
			reason = f.Reason
		}
		switch {
		case f == nil:
		case first == nil:
			first = f
			said = append(said, f.Message)
		case len(said) < shown:
			said = append(said, f.Message)
		default:
			more++
		}
	}
	if first == nil {
		return nil
	}
	all := *first
	all.Message, all.Reason = strings.Join(said, "; "), reason
	if more > 0 {
		all.Message += fmt.Sprintf("; and %d more", more)
	}
	return &all
}
