package changes

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// maxFindings is how many findings of one policy are shown with a change.
const maxFindings = 5

// rules say what stands against a change by the vendor's policies and the customer's
// guardrails, who overrode that, and how the customer's consent stands; nothing when no
// rule says anything.
func rules(c ctlapi.Change) []string {
	var lines []string
	passed := 0
	for _, r := range c.Policies {
		if r.Answer == ctlapi.PolicyAnswerAllow {
			passed++
			continue
		}
		whose := "policy"
		if r.Side == ctlapi.PolicySideCustomer {
			whose = "the customer's guardrail"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s %s", visible.Line(string(r.Answer)), whose, visible.Line(r.Policy)))
		for i, f := range r.Findings {
			if i == maxFindings {
				lines = append(lines, fmt.Sprintf("    and %d more: berth policies report --change %s -o json", len(r.Findings)-i+r.FindingsLeft, visible.Line(c.ID)))
				break
			}
			text := f.Document + " " + string(f.Result)
			if f.Message != nil {
				text += ": " + *f.Message
			}
			lines = append(lines, "    "+visible.Line(text))
		}
	}
	if passed > 0 {
		lines = append(lines, fmt.Sprintf("  policies and guardrails that it passes: %d", passed))
	}
	if o := c.PolicyOverride; o != nil {
		lines = append(lines, fmt.Sprintf("  policies overridden by %s until %s: %s", visible.Line(o.Actor), o.Until.UTC().Format(time.RFC3339), visible.Line(o.Reason)))
	}
	if k := c.Consent; k != nil {
		lines = append(lines, "  "+visible.Line(consentText(*k)))
	}
	return lines
}

func consentText(k ctlapi.CustomerConsent) string {
	who := strings.Join(k.By, ", ")
	if who == "" {
		who = "the customer"
	}
	text := map[ctlapi.CustomerConsentState]string{
		ctlapi.CustomerConsentStateNeeded: "the customer has to agree", ctlapi.CustomerConsentStateGiven: who + " agreed, for the customer",
		ctlapi.CustomerConsentStateDenied: who + " denied it, for the customer",
	}[k.State]
	if k.Still != nil && *k.Still > 0 {
		text += fmt.Sprintf(" (%d more)", *k.Still)
	}
	if k.Why != nil {
		text += ": " + *k.Why
	}
	return text
}
