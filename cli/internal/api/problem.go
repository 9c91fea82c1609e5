package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Problem is an answer of the control plane that says no.
type Problem struct{ ctlapi.Problem }

// Error says what went wrong, in the server's words.
func (p *Problem) Error() string {
	text := Value(p.Detail)
	if text == "" {
		text = strings.ToLower(p.Title)
	}
	// Faults of the server can be looked up in its log.
	if id := Value(p.RequestID); id != "" && p.Status >= http.StatusInternalServerError {
		text += " (request " + id + ")"
	}
	return text
}

// newProblem is what pkg/berth says, at a path.
func newProblem(from *berth.Problem, path string) *Problem {
	p := &Problem{ctlapi.Problem{
		Status: from.Status, Code: from.Code, Title: from.Title,
		Detail: Optional(from.Detail), Remedy: Optional(from.Remedy), RequestID: Optional(from.RequestID),
	}}
	if from.Errors != nil {
		p.Errors = &from.Errors
	}
	p.name(path)
	return p
}

// name says what was not found, when the service does not: the first two parts
// of the path are what and which.
func (p *Problem) name(path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if p.Status == http.StatusNotFound && len(parts) > 1 && Value(p.Detail) == "not found" {
		detail := fmt.Sprintf("there is no %s %q", strings.TrimSuffix(parts[0], "s"), parts[1])
		p.Detail = &detail
	}
}

// Remedy says what to do, "" when nobody knows.
func (p *Problem) Remedy() string {
	// What the server says of headers is no help to people.
	if p.Status == http.StatusUnauthorized {
		return "check BERTH_TOKEN or the context (berth context show); berth up writes the context local"
	}
	if r := Value(p.Problem.Remedy); r != "" {
		return r
	}
	if p.Status == http.StatusNotFound && strings.HasPrefix(Value(p.Detail), "there is no route ") {
		return (&NoBerth{}).Remedy()
	}
	if p.lacksInput() {
		return "give it with --input NAME=VALUE; with --input NAME berth asks for the value, as of a secret, and --input-file reads a file"
	}
	if p.Status == http.StatusForbidden {
		return "ask an admin of the org for the role you need; berth api /me shows the roles you have"
	}
	return ""
}

// lacksInput tells whether an install needs the value of an input.
func (p *Problem) lacksInput() bool {
	return p.Code == "inputs_invalid" && p.Errors != nil &&
		slices.ContainsFunc(*p.Errors, func(item ctlapi.ProblemItem) bool { return Value(item.Code) == "missing" })
}

// Refused tells whether the caller may not do this, as opposed to it being
// wrong or broken.
func (p *Problem) Refused() bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden
}

// Lines are the single faults, each with its place.
func (p *Problem) Lines() []string {
	if p.Errors == nil || len(*p.Errors) == 1 && strings.Contains(Value(p.Detail), (*p.Errors)[0].Message) {
		return nil // said already
	}
	lines := make([]string, 0, len(*p.Errors))
	for _, item := range *p.Errors {
		place := Value(item.Pointer)
		if name, ok := strings.CutPrefix(place, "/inputs/"); ok && strings.Contains(item.Message, fmt.Sprintf("%q", name)) {
			place = "" // the message names it
		}
		if file := Value(item.File); file != "" {
			place = file
			if line := Value(item.Line); line > 0 {
				place += fmt.Sprintf(":%d", line)
				if column := Value(item.Column); column > 0 {
					place += fmt.Sprintf(":%d", column)
				}
			}
		}
		if place == "" {
			lines = append(lines, item.Message)
		} else {
			lines = append(lines, place+" "+item.Message)
		}
	}
	return lines
}
