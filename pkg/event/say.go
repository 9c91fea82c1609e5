package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Facts are what a line about an event says besides its body, where it is known: an
// event leaves the control plane, and holds no text of a tool.
type Facts struct {
	Release        int    // its number; 0 for none
	Ended, EndedBy string // why a workflow failed when nothing broke: denied, expired
	Error          string
}

// body is what lines are made of; every field may be missing.
type body struct {
	Number       int               `json:"number"`
	WorkflowKind string            `json:"workflow_kind"`
	PlanOnly     bool              `json:"plan_only"`
	Step         string            `json:"step"`
	ChangeKind   string            `json:"change_kind"`
	Resource     string            `json:"resource"`
	ResourceKind string            `json:"resource_kind"`
	Rule         string            `json:"rule"`
	Action       string            `json:"action"`
	Trigger      string            `json:"trigger"`
	Check        string            `json:"check"`
	Why          string            `json:"why"`
	Reason       string            `json:"reason"`
	From         string            `json:"from"`
	To           string            `json:"to"`
	Stack        string            `json:"stack"`
	Changed      []string          `json:"changed"`
	Overrides    []string          `json:"overrides"`
	Toggles      map[string]string `json:"toggles"`
	Approvals    int               `json:"approvals"`
	Answer       string            `json:"answer"`
	Secret       string            `json:"secret"`
	Role         string            `json:"role"`
	Until        string            `json:"until"`
	AlertKind    string            `json:"alert_kind"`
	Subject      string            `json:"subject"`
	Text         string            `json:"text"`
	Because      string            `json:"because"`
	Installs     int               `json:"installs"`
	// Version is a number for inputs and variables, a text for a runner.
	Version json.RawMessage `json:"version"`
}

// Say tells in one line what happened, without who did it. A kind that this version
// does not know is called by its name.
func Say(kind Kind, raw json.RawMessage, facts Facts) string {
	var b body
	if json.Unmarshal(raw, &b) != nil {
		return string(kind)
	}
	noun, deed, _ := strings.Cut(string(kind), ".")
	say := sayings[noun]
	if say == nil {
		return string(kind)
	}
	return say(deed, b, facts)
}

var sayings = map[string]func(deed string, b body, f Facts) string{
	"workflow": sayWorkflow,
	"change":   sayChange,
	"install":  sayInstall,
	"runner":   sayRunner,
	"step": func(deed string, b body, f Facts) string {
		return "step " + b.Step + " " + deed + because(f.Error)
	},
	"action_run": func(deed string, b body, f Facts) string {
		text := "action " + b.Action + " " + deed
		switch {
		case deed == "missed":
			text = "action " + b.Action + " missed its scheduled run"
		case b.Trigger == "cron":
			text += " (scheduled)"
		case b.Trigger == "remediation":
			text += " (remediation)"
		}
		return text + because(f.Error)
	},
	"alert": func(deed string, b body, _ Facts) string {
		text := "alert " + deed + because(b.Text)
		if deed == "closed" && b.Because != "" {
			text += " (" + b.Because + ")"
		}
		return text
	},
	"incident": func(deed string, b body, _ Facts) string {
		text := strings.TrimRight(fmt.Sprintf("incident %s: %s %s", deed, b.Subject, strings.ReplaceAll(b.AlertKind, "_", " ")), ": ")
		if b.Installs > 0 {
			text += fmt.Sprintf(" in %d installs", b.Installs)
		}
		return text
	},
	"inputs": func(_ string, b body, _ Facts) string {
		var parts []string
		if len(b.Changed) > 0 {
			parts = append(parts, strings.Join(b.Changed, ", "))
		}
		if len(b.Overrides) > 0 {
			parts = append(parts, "own values of "+strings.Join(b.Overrides, ", "))
		}
		text := "inputs set, version " + b.version()
		if len(parts) > 0 {
			text += ": " + strings.Join(parts, "; ")
		}
		return text
	},
	"health": func(_ string, b body, _ Facts) string { return b.object() + " is " + b.To + was(b.From) },
	"check":  func(_ string, b body, _ Facts) string { return "check " + b.Check + " is " + b.To + was(b.From) },
	"remediation": func(deed string, b body, _ Facts) string {
		switch deed {
		case "helped":
			return b.Check + " is healthy after its remediation by action " + b.Action
		case "needs_attention":
			return "remediation of " + b.Check + " needs attention" + because(b.Why)
		}
		return "remediation of " + b.Check + " by action " + b.Action + " started"
	},
	"drift": func(_ string, b body, _ Facts) string {
		if b.To == "drifted" {
			return b.object() + " drifted from what was deployed"
		}
		return b.object() + " no longer drifts"
	},
	"resource": func(deed string, b body, _ Facts) string { return b.object() + " is " + deed + was(b.From) },
	"config":   func(_ string, b body, _ Facts) string { return fmt.Sprintf("app synced: config %d", b.Number) },
	"release": func(deed string, b body, _ Facts) string {
		if deed == "created" {
			deed = "made"
		}
		return fmt.Sprintf("release %d %s", b.Number, deed) + because(b.Reason)
	},
	"variables": func(_ string, b body, _ Facts) string { return "variables of the app set, version " + b.version() },
	"alarm":     func(deed string, _ body, _ Facts) string { return "alarm " + deed },
	"build":     func(deed string, _ body, _ Facts) string { return "build " + deed },
	"approval_policy": func(_ string, b body, _ Facts) string {
		return fmt.Sprintf("changes need %d approvals", max(1, b.Approvals))
	},
	"decision": func(_ string, b body, f Facts) string {
		return b.change(f) + " answered" + strings.TrimRight(": "+strings.ReplaceAll(b.Answer, "_", " "), ": ")
	},
	"freeze": func(deed string, _ body, _ Facts) string { return "freeze " + deed },
	"secret": func(deed string, b body, _ Facts) string {
		return strings.TrimSpace("secret "+b.Secret) + " " + deed + " by the customer"
	},
	"consent": func(deed string, _ body, _ Facts) string {
		return map[string]string{"needed": "a change needs the customer's consent", "given": "the customer agreed to a change", "denied": "the customer denied a change"}[deed]
	},
	"policy": func(_ string, _ body, _ Facts) string { return "a change let pass that policies deny" },
	"role": func(deed string, b body, _ Facts) string {
		text := "role " + b.Role + map[string]string{"enabled": " switched on", "disabled": " switched off"}[deed]
		if b.Until != "" {
			text += " until " + b.Until
		}
		return text
	},
	"webhook_delivery": func(_ string, _ body, _ Facts) string { return "an event did not reach a webhook" },
}

func sayWorkflow(deed string, b body, f Facts) string {
	text := strings.ReplaceAll(b.WorkflowKind, "_", " ")
	if b.PlanOnly {
		text = "plan of " + text
	}
	text += fmt.Sprintf(" #%d", b.Number)
	if f.Release > 0 && b.WorkflowKind != "action_run" && b.WorkflowKind != "role_switch" {
		text += fmt.Sprintf(" (release %d)", f.Release)
	}
	switch {
	case deed == "queued":
		return text + " requested"
	case f.Ended == "denied":
		return text + " ended: denied" + by(f.EndedBy)
	case f.Ended == "expired":
		return text + " ended: nobody decided in time"
	case deed == "failed":
		return text + " failed" + because(f.Error)
	}
	return text + " " + deed
}

func sayChange(deed string, b body, f Facts) string {
	text := b.change(f)
	switch deed {
	case "proposed":
		return text + " waits for a decision"
	case "approved":
		switch b.Rule {
		case "approve_all":
			return text + " approved by a standing answer"
		case "kept":
			return text + " stays approved: the same effect"
		}
	case "refused":
		return text + " refused by the runner" + because(f.Error)
	case "uncertain":
		return "outcome of " + text + " is uncertain" + because(f.Error)
	case "failed":
		return text + " failed" + because(f.Error)
	case "applied":
		if f.Release > 0 && b.Resource != "" {
			text += fmt.Sprintf(" (release %d)", f.Release)
		}
	}
	return text + " " + deed
}

// change is what a change does, as a noun.
func (b body) change(f Facts) string {
	switch b.ChangeKind {
	case "accept":
		if f.Release > 0 {
			return fmt.Sprintf("acceptance of the scripts of release %d", f.Release)
		}
		return "acceptance of scripts"
	case "forget":
		return "removal of the accepted scripts"
	case "script":
		return "run of an action"
	case "secret_sync":
		return "copy of secrets to the cluster"
	}
	return strings.ReplaceAll(cmp.Or(b.ChangeKind, "change"), "_", " ") + " of " + b.object()
}

// object is what people call a resource.
func (b body) object() string {
	switch {
	case b.ResourceKind == "component":
		return b.Resource
	case b.ResourceKind != "":
		return "the " + b.ResourceKind
	}
	return cmp.Or(b.Resource, "the install")
}

func sayInstall(deed string, b body, _ Facts) string {
	switch deed {
	case "created":
		return "install made, stack " + b.Stack
	case "updated":
		var parts []string
		for _, name := range b.Changed {
			if name != "component_toggles" {
				parts = append(parts, strings.ReplaceAll(name, "_", " ")+" changed")
			}
		}
		for name, to := range b.Toggles {
			to = map[string]string{"true": "on", "false": "off"}[to]
			parts = append(parts, name+" switched "+cmp.Or(to, "to its default"))
		}
		slices.Sort(parts)
		if len(parts) == 0 {
			return "settings changed"
		}
		return strings.Join(parts, ", ")
	case "deprovisioning":
		return "install is being taken down"
	case "provisioning":
		return "install is being provisioned"
	}
	return "install is " + deed
}

func sayRunner(deed string, b body, _ Facts) string {
	switch deed {
	case "offline":
		return "runner offline: silent for 2 minutes"
	case "online":
		return "runner online"
	case "switched":
		return "the customer set the runner's switch to " + b.To + was(b.From)
	}
	text := "runner " + deed
	if v := b.version(); deed == "enrolled" && v != "" {
		text += ", version " + v
	}
	return text
}

func (b body) version() string {
	var text string
	if json.Unmarshal(b.Version, &text) == nil {
		return text
	}
	var n int
	if json.Unmarshal(b.Version, &n) == nil {
		return strconv.Itoa(n)
	}
	return ""
}

func was(state string) string {
	if state == "" || state == "unknown" {
		return ""
	}
	return " (was " + state + ")"
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return " by " + actor
}

// longestError is how much of an error stands in a line, in characters.
const longestError = 300

// because adds the first line of an error.
func because(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return ""
	}
	if runes := []rune(line); len(runes) > longestError {
		line = string(runes[:longestError]) + "…"
	}
	return ": " + line
}
