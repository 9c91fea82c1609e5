// Package weakened turns one defence of the runner off, so that the drill can be seen to
// find that: an attack that is refused with the defence and succeeds without it is no dud.
//
// It does nothing in what is shipped. Only executables that are built with the tag
// weakened read BERTH_WEAKENED, which names the defence; in all others [Is] is false at
// compile time, and the compiler leaves out what depends on it (TestNothingPlanted looks).
package weakened

// A Defence can be turned off.
type Defence string

// The defences.
const (
	OrderSignature    Defence = "order-signature"    // orders are signed by a pinned key
	OrderSpec         Defence = "order-spec"         // an order is for exactly these bytes
	OrderLifetime     Defence = "order-lifetime"     // an order expires
	OrderOnce         Defence = "order-once"         // a job that has ended does not begin again
	EffectOnce        Defence = "effect-once"        // an effect is brought about once
	EffectDigest      Defence = "effect-digest"      // what is applied is what was planned
	Fence             Defence = "fence"              // a change holds the lock that it was granted
	Scripts           Defence = "scripts"            // a script runs that was accepted
	VendorKey         Defence = "vendor-key"         // the vendor's key signed the release
	Consent           Defence = "consent"            // the customer agreed
	Guardrails        Defence = "guardrails"         // guardrails that ask are heeded
	Roles             Defence = "roles"              // a role is switched on
	SettingsSignature Defence = "settings-signature" // settings are signed by a pinned key
	SettingsVersion   Defence = "settings-version"   // settings only rise
	Switch            Defence = "switch"             // the customer's switch
	Hosts             Defence = "hosts"              // addresses are pinned
	SealPurpose       Defence = "seal-purpose"       // sealed bytes are opened for what they were sealed for
	Redaction         Defence = "redaction"          // known secrets leave the machine as "(redacted)"
	ChainHeads        Defence = "chain-heads"        // a chain leads to the heads that were kept
)
