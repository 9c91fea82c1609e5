// Package destruction makes sure that nobody removes something by mistake: a
// request that removes what may not come back has to repeat the name of what it
// removes. No approval of changes and no
// setting of an install stands in for the confirmation.
package destruction

import (
	"github.com/berth-dev/berth/services/internal/fault"
)

// Code is that of a refusal; clients branch on it to ask a person.
const Code = "not_confirmed"

// Deed removes something for good.
type Deed struct {
	What string   // "the deprovision of install acme"
	Name string   // what a request has to name: the install or the app
	Goes []string // what it removes, in order; may be empty
}

// Confirmed says whether a request may do the deed: its confirm field has the
// name, to the letter. The refusal is ErrInvalid with Code, and its fields list
// what the deed removes.
func (d Deed) Confirmed(confirm string) error {
	if confirm == d.Name && confirm != "" {
		return nil
	}
	err := fault.Newf(fault.ErrInvalid, "%s is not confirmed; nothing was done", d.What)
	if confirm != "" {
		err = fault.Newf(fault.ErrInvalid, "%s is confirmed with %q instead of %q; nothing was done", d.What, confirm, d.Name)
	}
	fields := make([]fault.FieldError, 0, len(d.Goes))
	for _, what := range d.Goes {
		fields = append(fields, fault.FieldError{Code: "removes", Detail: what})
	}
	return fault.With(err, fault.Code(Code), fault.Fields(fields...),
		fault.Remedy("look at what it removes, then confirm it with the name: --confirm %s (in the API: confirm)", d.Name))
}
