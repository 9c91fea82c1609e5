package review

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is an answer in a word.
type Verdict string

// The verdicts. Partly: it holds with the limits that the text names.
const (
	Yes    Verdict = "yes"
	No     Verdict = "no"
	Partly Verdict = "partly"
	NotYet Verdict = "not yet"
)

// Answer is one of thirty.
type Answer struct {
	Number   int      `json:"number"`
	Question string   `json:"question"`
	Verdict  Verdict  `json:"verdict"`
	Text     string   `json:"text"`
	Commands []string `json:"commands"`
	Tests    []string `json:"tests"`    // that hold it
	Controls []string `json:"controls"` // of SOC 2, ISO 27001, NIST 800-53
}

// say makes an answer of a verdict and a text.
func say(v Verdict, format string, args ...any) func(*Answer) {
	return func(a *Answer) { a.Verdict, a.Text = v, fmt.Sprintf(format, args...) }
}

// Answers are those of a runner, in their order.
func Answers(f Facts) []Answer {
	list := make([]Answer, 0, len(questions))
	for i, q := range questions {
		a := Answer{Number: i + 1, Question: q.text, Commands: q.commands, Tests: q.tests, Controls: q.controls}
		q.answer(f)(&a)
		list = append(list, a)
	}
	return list
}

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// isolated says whether engines are kept apart.
func (f Facts) isolated() bool { return f.Trust == "isolated" }

// guarded says whether guardrails hold anything back.
func (f Facts) guarded() bool { return f.Guardrails > 0 && !f.OnlyWarn && f.isolated() }

func (f Facts) trustText() string {
	switch f.Trust {
	case "isolated":
		return "engines are isolated (" + f.Isolation + ")"
	case "":
		return "no agent has run here yet, so isolation is not known"
	}
	return "trust is " + f.Trust + ": vendor code in engines can reach what the runner's user can, its keys included (" + f.Isolation + ")"
}

func (f Facts) guardrailText() string {
	switch {
	case f.Guardrails == 0:
		return "no guardrail is loaded"
	case !f.guarded():
		return fmt.Sprintf("%d guardrails only warn", f.Guardrails)
	case len(f.InDoubt) > 0:
		return fmt.Sprintf("%d guardrails are in doubt, so every change asks you: %s", f.Guardrails, f.InDoubt[0])
	}
	return fmt.Sprintf("%d guardrails count (%d your own; digest %s)", f.Guardrails, f.OwnGuardrails, f.RulesDigest)
}

func (f Facts) consentText() string {
	text := fmt.Sprintf("consent mode is %s", f.Consent)
	if f.ByMachine {
		return text + ", without holders: the person who has this machine's account answers what guardrails ask"
	}
	return text + fmt.Sprintf(", %d of %d holders have to agree (%s; %d with security keys only)", f.Need, len(f.Holders), names(f.Holders), f.Hardware)
}

func takenOver(f Facts) func(*Answer) {
	left := "it can stop or delay work, order plans and read what leaves in clear"
	switch {
	case !f.isolated() || f.KeyProblem != "":
		return say(No, "a control plane that was taken over is not held back here: %s. %s; %s", f.trustText(), f.guardrailText(), f.consentText())
	case f.Consent == "each":
		return say(Yes, "nothing in your account changes without your signature over exactly that effect; %s; %s. What remains: %s", f.consentText(), f.guardrailText(), left)
	case f.Consent == "rules":
		return say(Partly, "it changes only what your standing rules cover (%d rules, version %d) or you sign; %s. What remains: %s", f.Rules, f.RulesVersion, f.guardrailText(), left)
	}
	return say(Partly, "it can have carried out what your guardrails let pass: %s; %s. Each effect is in the chain before it happens. What remains: %s", f.guardrailText(), f.consentText(), left)
}

func identity(f Facts) func(*Answer) {
	if f.RunnerID == "" {
		return say(NotYet, "this runner is not enrolled")
	}
	recovery := "there is NO recovery key, so nobody but this machine vouches for it"
	if f.Recovery != "" {
		recovery = "recovery key " + f.Recovery + " signs replacements"
	}
	if f.KeyProblem != "" {
		return say(No, "another process holds this runner's key: %s", f.KeyProblem)
	}
	former := ""
	if len(f.Former) > 0 {
		former = ". Machines before, each of which the recovery key handed over: " + names(f.Former)
	}
	return say(Yes, "key %s was made on this machine and bound by a single-use code; each request is signed with it; a second session is found at the next call; %s. The vendor revokes at once, you replace the machine with `replace`%s", f.Machine, recovery, former)
}

func emergency(f Facts) func(*Answer) {
	if len(f.Roles) == 0 {
		return say(Yes, "the app has no role to switch on, and the vendor has no shell here")
	}
	return say(Yes, "the app has the roles %s; on right now: %s. You switch them, with an end that counts without network", names(f.Roles), names(f.RolesOn))
}

func chainAnswer(f Facts) func(*Answer) {
	switch {
	case f.ChainRecords == 0 && f.ChainProblem == "":
		return say(NotYet, "the chain has no record yet")
	case f.ChainProblem != "":
		return say(No, "the chain is not good: %s", f.ChainProblem)
	case f.ChainDecisions > 0:
		return say(Partly, "the chain verifies (%d records, head %s), and %d times you accepted that records are missing", f.ChainRecords, f.ChainHead, f.ChainDecisions)
	}
	return say(Yes, "jobs, not shells, run here, and each effect is a record of a signed chain on your machine: %d records, head %s, %d anchors of the vendor's chain, %d effects without outcome. Keystrokes are not recorded: there are none",
		f.ChainRecords, f.ChainHead, f.ChainAnchors, f.Unfinished)
}

func inClear(f Facts) func(*Answer) {
	form := "states and outputs are sealed to your keys before they leave; plans are sealed too"
	if f.FirstForm {
		form += ", but what was sealed before purposes existed still opens: run berth-runner reseal"
	}
	seen := "the readable summary of a plan, redacted log lines, and of states what --vendor-sees-state allows (" + f.VendorSees + ")"
	if len(f.EgressOff) > 0 {
		seen += "; switched off: " + names(f.EgressOff)
	}
	return say(Partly, "%s. In clear the vendor has %s", form, seen)
}

func windows(f Facts) func(*Answer) {
	switch {
	case f.RulesProblem != "":
		return say(No, "standing rules do not count: %s", f.RulesProblem)
	case f.Rules == 0:
		return say(No, "no standing rules are here, so no window and no freeze of yours; the vendor's freezes are the vendor's")
	case f.Consent != "rules":
		return say(No, "there are %d standing rules, and consent mode %s does not ask them", f.Rules, f.Consent)
	}
	return say(Yes, "%d standing rules with %d windows and %d freezes, until %s; outside of them a change waits for you", f.Rules, f.Windows, f.Freezes, f.RulesExpire.Format(time.RFC3339))
}

func listeners(f Facts) func(*Answer) {
	out := fmt.Sprintf("Outbound: named %s; reached %s. Engines reach what your network lets them", names(f.Outbound), names(f.Reached))
	switch {
	case f.Unseen != "":
		return say(Partly, "listeners of the agent cannot be seen from here: %s. %s", f.Unseen, out)
	case !f.Active:
		return say(Partly, "no agent is running, so nothing listens. %s", out)
	}
	for _, l := range f.Listeners {
		if !strings.HasPrefix(l, "127.") && !strings.HasPrefix(l, "[::1]") {
			return say(No, "the agent's process listens on %s. %s", names(f.Listeners), out)
		}
	}
	return say(Yes, "the agent's process listens on nothing that others reach (on loopback: %s). %s", names(f.Listeners), out)
}

func egressAnswer(f Facts) func(*Answer) {
	text := fmt.Sprintf("%d classes, %d of them switchable, off now: %s; the ledger has %d lines, the chain vouches up to line %d", f.EgressClasses, f.EgressCanOff, names(f.EgressOff), f.EgressLine, f.EgressAgreed)
	if f.EgressProblem != "" {
		return say(No, "the egress ledger is not good: %s. %s", f.EgressProblem, text)
	}
	return say(Partly, "%s. Classes without which work stops cannot be off; engines have a network of their own, which the ledger does not see", text)
}

func alone(f Facts) func(*Answer) {
	switch {
	case f.Consent == "vendor":
		return say(Partly, "at the vendor that is the vendor's policy; on your side nobody is asked but by guardrails (%s)", f.guardrailText())
	case f.ByMachine || f.Need < 2:
		return say(Partly, "one person of your side is enough: %s", f.consentText())
	}
	return say(Yes, "no: %s", f.consentText())
}

func signedArtifacts(f Facts) func(*Answer) {
	const always = "artifacts are fetched by the digest that the signed order names, and one that differs is refused; signed provenance, and an SBOM where Berth knows the parts, come along with them"
	images := "no rule in trust.json says who must have signed images"
	if f.Images > 0 {
		images = fmt.Sprintf("%d rules in trust.json say who must have signed images, verified here, offline", f.Images)
	}
	if len(f.Vendor) == 0 {
		return say(Partly, "%s. You pinned no vendor key, so releases are taken unsigned; %s", always, images)
	}
	return say(Yes, "%s. Releases are taken that %s signed, which you pinned; %s", always, names(f.Vendor), images)
}

func downgrades(f Facts) func(*Answer) {
	const always = "an older runner, older settings, older standing rules, a lower fence and an older state are refused"
	if len(f.Vendor) == 0 {
		return say(Partly, "%s. An app's release that is older and was never accepted is refused only with a vendor key, and you pinned none", always)
	}
	return say(Yes, "%s; so is a signed release that is older and was never accepted, that you or the vendor revoked (%s), or of which anything was exchanged", always, revoked(f))
}

// revoked says which releases are not taken any more.
func revoked(f Facts) string {
	if len(f.Revoked)+len(f.VendorRevoked) == 0 {
		return "none so far"
	}
	return fmt.Sprintf("you: %s; the vendor: %s", numbers(f.Revoked), numbers(f.VendorRevoked))
}

func numbers(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

func updates(f Facts) func(*Answer) {
	if len(f.Release) == 0 {
		return say(Yes, "you pinned no release key: the runner takes no update by itself")
	}
	return say(Yes, "an update is a change, from releases signed by %s, which you pinned; a version that does not come up falls back to the one before", names(f.Release))
}

func sandbox(f Facts) func(*Answer) {
	if !f.isolated() {
		return say(No, "%s", f.trustText())
	}
	return say(Yes, "%s; limits: %s. Scripts run only after their release was accepted, plugins only signed and with the permissions that were accepted", f.trustText(), f.Limits)
}

func fips(f Facts) func(*Answer) {
	if !f.FIPS {
		return say(No, "the Go cryptographic module is not in FIPS 140-3 mode in this process (GODEBUG=fips140=on switches it). Seals are X25519 with ChaCha20-Poly1305, which is not approved in any mode")
	}
	return say(Partly, "the Go cryptographic module is in FIPS 140-3 mode. Seals are X25519 with ChaCha20-Poly1305, which is not approved")
}

func outage(f Facts) func(*Answer) {
	text := "checks and schedules go on until the settings expire"
	if !f.SettingsExpire.IsZero() {
		text += " (version " + fmt.Sprint(f.Settings) + ": " + f.SettingsExpire.Format(time.RFC3339) + ")"
	}
	if f.Recovery == "" {
		return say(Partly, "%s; states and outputs open on this machine only: there is no recovery key", text)
	}
	return say(Yes, "%s; states and outputs open with your recovery key %s without the vendor; artifacts that were deployed are in the install's own registry. New changes need the control plane", text, f.Recovery)
}

func stop(f Facts) func(*Answer) {
	return say(Yes, "the switch is a file of yours (%s now): pause, read-only, stop-now, sever; it counts at once and needs nobody. What was deployed keeps running", f.Switch)
}

func widen(f Facts) func(*Answer) {
	if !f.isolated() {
		return say(No, "%s", f.trustText())
	}
	return say(Yes, "only your files: trust.json, guardrails/, egress-off.json, switch.json; dispatch keys %s cannot change them. %s", names(f.Dispatch), f.consentText())
}

func same(f Facts) func(*Answer) {
	if f.ChainProblem != "" {
		return say(Partly, "the runner compares the effect again before it applies exactly the planned bytes, but the chain that records it is not good: %s", f.ChainProblem)
	}
	return say(Yes, "the runner computes the effect digest again before the apply and uses exactly the planned bytes; the chain records both (%d records)", f.ChainRecords)
}

func secretsAnswer(f Facts) func(*Answer) {
	text := fmt.Sprintf("machine key %s and the key that opens seals are files of the runner (0600); your secrets are sealed on its disk. A KMS of yours: not yet", f.Machine)
	if f.Recovery == "" {
		return say(Partly, "%s. There is no recovery key", text)
	}
	return say(Partly, "%s. Recovery key: %s, away from here", text, f.Recovery)
}

func proxy(f Facts) func(*Answer) {
	return say(Partly, "proxy: %s; private authority: %s. A private link is your network's; the runner needs only the addresses that trust.json names", or(f.Proxy, "none set"), or(f.PrivateCA, "none set"))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func fixed(v Verdict, text string) func(Facts) func(*Answer) {
	return func(Facts) func(*Answer) { return say(v, "%s", text) }
}
