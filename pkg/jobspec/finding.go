package jobspec

import "time"

// MaxFindings is how many findings the result of a look has at most; MaxFindingText is the
// longest text of one, in bytes.
const (
	MaxFindings    = 10
	MaxFindingText = 512
)

// FindingsOutput is the name under which a Run of a probe, or of an action made of one, has its
// findings among its outputs.
const FindingsOutput = "findings"

// Look is what came of one of several probes.
type Look struct {
	Outcome      Outcome       `json:"outcome"` // succeeded or failed
	ExitCode     int           `json:"exit_code"`
	Error        string        `json:"error,omitempty"`
	Findings     []Finding     `json:"findings,omitempty"`
	Certificates []Certificate `json:"certificates,omitzero"` // nil when it did not look for them
	StartedAt    time.Time     `json:"started_at"`
	FinishedAt   time.Time     `json:"finished_at"`
}

// Finding is an object of a component that is not ready, or of which nobody can tell.
type Finding struct {
	// Object is its kind, namespace and name: "Deployment shop/web".
	Object string `json:"object"`
	// Condition is what it says of itself, Pod what its pods say, Event the newest warnings
	// about it and its pods.
	Condition string `json:"condition,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Event     string `json:"event,omitempty"`
	// Unknown: nobody can tell. Its kind has a status in which nothing says whether it is ready,
	// or a probe could not look.
	Unknown bool `json:"unknown,omitempty"`
}
