// Package review answers the questions that a customer's security reviewer asks, from
// facts of one runner. Answers is pure; who calls it finds the facts out.
package review

import "time"

// Facts are what is known of a runner right now.
type Facts struct {
	At        time.Time `json:"at"`
	Version   string    `json:"version"`
	Go        string    `json:"go"`
	Modules   int       `json:"modules"` // that the executable was built of
	FIPS      bool      `json:"fips"`    // the Go cryptographic module runs in FIPS 140-3 mode
	RunnerID  string    `json:"runner_id"`
	InstallID string    `json:"install_id"`
	Active    bool      `json:"active"`
	Connected bool      `json:"connected"`

	// Trust is isolated or development, "" before an agent ran; Isolation and Limits say more.
	Trust     string `json:"trust"`
	Isolation string `json:"isolation"`
	Limits    string `json:"limits"`
	Switch    string `json:"switch"`

	// Listeners are addresses on which the agent's process listens; Unseen says why that
	// is not known.
	Listeners []string `json:"listeners"`
	Unseen    string   `json:"listeners_unseen,omitempty"`
	// Outbound are hosts that trust.json or the first session names, Reached those that
	// the ledger has lines for.
	Outbound  []string `json:"outbound"`
	Reached   []string `json:"reached"`
	Proxy     string   `json:"proxy,omitempty"`
	PrivateCA string   `json:"private_ca,omitempty"`

	Machine string `json:"machine_key"`
	// Former are the keys of machines that wrote the chain before, with their records.
	Former   []string `json:"former_machine_keys"`
	Dispatch []string `json:"dispatch_keys"`
	Recovery string   `json:"recovery_key,omitempty"`
	Release  []string `json:"release_keys"`
	// Vendor are the keys that must have signed the app's releases, Images how many rules say
	// who must have signed images.
	Vendor []string `json:"vendor_keys"`
	Images int      `json:"image_rules"`
	// Revoked are the numbers of releases that the customer revoked here, VendorRevoked of
	// those that the vendor did.
	Revoked       []int `json:"revoked_releases"`
	VendorRevoked []int `json:"vendor_revoked_releases"`

	Consent  string   `json:"consent_mode"`
	Need     int      `json:"consent_need"`
	Holders  []string `json:"holders"`
	Hardware int      `json:"hardware_holders"` // whose keys are all security keys
	// ByMachine: no holders are named, the machine's key stands in.
	ByMachine bool `json:"consent_by_machine"`

	Rules        int       `json:"standing_rules"`
	RulesVersion int64     `json:"rules_version,omitempty"`
	RulesExpire  time.Time `json:"rules_expire,omitzero"`
	Windows      int       `json:"windows"`
	Freezes      int       `json:"freezes"`
	RulesProblem string    `json:"rules_problem,omitempty"`

	Guardrails    int      `json:"guardrails"`
	OwnGuardrails int      `json:"own_guardrails"`
	OnlyWarn      bool     `json:"guardrails_only_warn"`
	InDoubt       []string `json:"guardrails_in_doubt"`
	RulesDigest   string   `json:"guardrails_digest"`

	Roles   []string `json:"roles"` // of the app
	RolesOn []string `json:"roles_on"`

	EgressOff     []string `json:"egress_off"`
	EgressClasses int      `json:"egress_classes"`
	EgressCanOff  int      `json:"egress_switchable"`
	EgressProblem string   `json:"egress_problem,omitempty"`
	EgressLine    int64    `json:"egress_line"`
	EgressAgreed  int64    `json:"egress_agreed"`

	ChainRecords   int64     `json:"chain_records"`
	ChainHead      string    `json:"chain_head"`
	ChainAnchors   int       `json:"chain_anchors"`
	ChainDecisions int       `json:"chain_decisions"`
	ChainProblem   string    `json:"chain_problem,omitempty"`
	Unfinished     int       `json:"unfinished"`
	KeyProblem     string    `json:"key_problem,omitempty"`
	Settings       int64     `json:"settings_version"`
	SettingsExpire time.Time `json:"settings_expire,omitzero"`
	VendorSees     string    `json:"vendor_sees_state"`
	FirstForm      bool      `json:"first_form"`
	Downloads      string    `json:"terraform_downloads"`
}
