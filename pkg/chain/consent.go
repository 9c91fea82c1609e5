package chain

import "github.com/berth-dev/berth/pkg/capsule"

// Consent is what an intent says of the customer's side: who agreed to its effect. The
// capsule of the same record is the vendor's side of it.
type Consent struct {
	// Mode is the customer's at that time: vendor, rules or each.
	Mode string `json:"mode"`
	// By are the holders that agreed, Keys the ids of their keys.
	By   []string `json:"by,omitempty"`
	Keys []string `json:"keys,omitempty"`
	// Signed are their answers, as they were signed.
	Signed []capsule.Envelope `json:"signed,omitempty"`
	// Rule is the standing rule that agreed in their place, out of the file of that
	// version and digest.
	Rule         string `json:"rule,omitempty"`
	RulesVersion int64  `json:"rules_version,omitempty"`
	RulesDigest  string `json:"rules_digest,omitempty"`
}

// StandingRules is what an event says of a file of standing rules that came into force.
type StandingRules struct {
	Version int64            `json:"version"`
	Digest  string           `json:"digest"`
	Signed  capsule.Envelope `json:"signed"`
}
