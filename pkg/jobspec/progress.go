package jobspec

import "time"

// Progress is what an engine does right now, in out/progress.json: it is written by
// rename, over what was there, and gone while there is nothing to tell. It is for
// people who watch; nothing is decided by it. Like a line of the log it may hold a
// secret until the agent has redacted it.
type Progress struct {
	// What is the one thing that is worked on or waited for: the address of a
	// Terraform resource, or an object of a cluster. Of several at once, the one
	// that takes longest.
	What string `json:"what"`
	// Doing says what is done with it, or how it stands: "creating", "Available: 1/2".
	Doing string `json:"doing"`
	// Since is when that began.
	Since time.Time `json:"since"`
	// Done of Total such things are finished; Total is 0 when it is not known.
	Done  int `json:"done"`
	Total int `json:"total"`
}

// MaxProgress bounds out/progress.json, in bytes. A larger one is not read.
const MaxProgress = 16 << 10
