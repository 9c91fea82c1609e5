package policies

import (
	"cmp"

	"github.com/berth-dev/berth/services/internal/model"
)

// ConsentText says for people how the customer's consent to a change stands; by are the
// names of those who answered, why what they said or why they are asked.
func ConsentText(state model.ConsentState, by, why string) string {
	text := ""
	switch state {
	case "":
		return ""
	case model.ConsentNeeded:
		text = "the customer has to agree to it"
	case model.ConsentGiven:
		text = cmp.Or(by, "the customer") + " agreed to it"
	case model.ConsentDenied:
		text = cmp.Or(by, "the customer") + " denied it"
	}
	if why != "" {
		text += ": " + why
	}
	return text
}
