package evidence

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/evidence"
)

// Control is what a framework asks for, and where this folder answers it.
type Control struct{ SOC2, ISO27001, NIST, Asks, Look string }

// Controls are those that evidence of changes is about.
func Controls() []Control {
	return []Control{
		{"CC8.1", "A.8.32", "CM-3", "changes are authorized, documented and recorded", "`changes.csv`, `orders/` (the vendor's signature), `chain.jsonl` (`consent`: yours)"},
		{"CC8.1", "A.8.32", "CM-3(2)", "changes are judged before they take effect", "`plans/`: `judgement`, with the engine's version; `guardrails/`"},
		{"CC8.1", "A.8.31", "CM-5", "only authorized parties change production", "`trust.json`: whose orders and whose consent count"},
		{"CC6.1", "A.8.3", "AC-3", "access is by the owner's rules", "`trust.json`, `standing-rules.json`, events of roles in `chain.jsonl`"},
		{"CC6.6", "A.8.20", "SC-7", "boundaries to outside systems are controlled", "`egress/`: each class of bytes that left, to whom"},
		{"CC6.7", "A.5.14", "SC-7(10)", "what is transmitted is restricted", "`egress/`; events `egress of … was switched off` in `chain.jsonl`"},
		{"CC6.8", "A.8.19", "CM-11", "only accepted code runs", "acceptances of releases in `chain.jsonl` (`scripts`), `release-keys.json`"},
		{"CC7.2", "A.8.15", "AU-2", "events are recorded", "`chain.jsonl`, `logs/` (number of lines and hash of each log)"},
		{"CC7.3", "A.8.15", "AU-9", "records are protected against change", "the chain's hashes and signatures, the signed `index.json`, heads that the vendor keeps"},
		{"CC7.4", "A.5.28", "AU-10", "who did what cannot be denied", "signatures in `orders/` and in `consent` of `chain.jsonl`"},
	}
}

func readme(index evidence.Index, changes int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `# Evidence of install %s

Made %s by runner %s, version %s. Changes from %s on: %d. The chain is here from its first record to record %d.

## Check it

    berth-verify evidence . --key MACHINE.pub

needs no network. `+"`MACHINE.pub`"+` is what `+"`berth-runner chain key`"+` prints on the machine; without `+"`--key`"+` the folder's own key is used, and somebody could have made
the whole folder up. Add `+"`--head VENDOR.jsonl`"+` with the vendor's chain (`+"`berth orgs chain`"+`): then records cut off the end, and another history, are found too.

## What is here

| file | is |
|---|---|
| index.json | size and SHA-256 of each file, signed by the machine's key (DSSE) |
| changes.csv, changes.json | one line for each change: when, what, who ordered it at the vendor, who agreed on the customer's side, effect, outcome, verdicts that did not pass |
| chain.jsonl | the chain: each record signed, each with the hash of the one before; it carries the heads of the vendor's chain, consents as they were signed, and acceptances of releases |
| orders/JOB.json | the vendor's order of each change as it was signed; the chain names it by digest |
| plans/CHANGE.json | what was planned: the effect document, whose digest was agreed to, and what policies and guardrails said of it |
| logs/JOB.ATTEMPT.json | number of lines and hash of each log |
| egress/ | what left the agent |
| guardrails/, standing-rules.json | the customer's rules as they are now, standing rules as they were signed |
| trust.json, release-keys.json | the public keys and addresses that this runner trusts now |

Times are the machine's own. Keys of holders that were removed since are not in trust.json: their signatures are counted as not checked.

## Controls

| SOC 2 | ISO 27001 | NIST 800-53 (FedRAMP) | asks that | look at |
|---|---|---|---|---|
`, index.InstallID, index.MadeAt.Format(time.RFC3339), index.RunnerID, index.Version, index.Since.Format(time.RFC3339), changes, index.ChainHead.Seq)
	for _, c := range Controls() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.SOC2, c.ISO27001, c.NIST, c.Asks, c.Look)
	}
	b.WriteString("\nThe mapping says where to look. Whether a control is met, an auditor decides.\n")
	return []byte(b.String())
}
