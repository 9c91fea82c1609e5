package scripts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// What is said of a script that is not accepted, and what to do about it.
const (
	NotAccepted  = "this script is not accepted"
	AcceptRemedy = "deploy the install (`berth deploy INSTALL`): it shows the scripts of the release and asks for them once"
)

// Objection is why an order about a script is not carried out.
type Objection struct {
	Text, Remedy string
	Differs      jobspec.Difference
}

// Objects says which of the inputs the script does not name; nil when it names all.
func (a Accepted) Objects(inputs map[string]string) *Objection {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !a.Script.Takes(name) {
			return &Objection{
				Text: fmt.Sprintf("the script takes no input %q", name), Remedy: "leave it out, or declare it as an input of the action",
				Differs: jobspec.Difference{Field: "action.inputs", Want: "only inputs that the accepted script names", Got: name},
			}
		}
	}
	return nil
}
