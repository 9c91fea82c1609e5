package capsule

import "time"

// OrderType is the payload type of a signed Order.
const OrderType = "application/vnd.berth.order.v1+json"

// OrderLifetime is the longest time that an order is good for, by the runner's
// clock: longer than any outage that a queued job shall survive by itself.
const OrderLifetime = 24 * time.Hour

// How many times an engine may be started for one order. A mutation begins once;
// what changes nothing may begin again after its engine died.
const (
	StartsOfMutation = 1
	StartsOfReading  = 3
)

// Order is what a runner acts on. It is signed when a job is made, and says
// what to do, who may do it, on what, and how often. Everything else that
// reaches the runner is either named in it by digest or can only delay, stop or
// misfile. Orders for installs are signed with the org's dispatch key, orders
// for builds with the builder's key of that org; each runner accepts only its
// own.
//
// The last four fields are set for mutations only, for which the order is the
// capsule: the one-time order to bring one approved effect about.
type Order struct {
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"` // empty for builds
	RunnerID  string `json:"runner_id"`
	// MachineKeyID is the KeyID of the machine key that the runner had when the
	// order was made: a machine that took over does not inherit orders.
	MachineKeyID string `json:"machine_key_id"`
	JobID        string `json:"job_id"`
	Kind         string `json:"kind"`      // jobspec.Kind
	Operation    string `json:"operation"` // jobspec.Operation
	ResourceID   string `json:"resource_id"`
	ChangeID     string `json:"change_id"`
	BuildID      string `json:"build_id"`
	// OriginID is the first change of a line of plans made again and retries: an
	// effect is consumed once per origin.
	OriginID  string `json:"origin_id"`
	ReleaseID string `json:"release_id"`
	// SpecDigest is DigestBytes of the job's spec as it is stored and sent.
	SpecDigest string `json:"spec_digest"`
	// StateDigest is DigestBytes of the state that templates read, as it stands in
	// the spec; "" without one.
	StateDigest string `json:"state_digest"`
	// Starts is how many times an engine may be started for it.
	Starts    int       `json:"starts"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// MinRunnerVersion is the oldest runner that may execute it (semantic
	// version, without or with "v"); empty means any.
	MinRunnerVersion string `json:"min_runner_version"`
	// Actor is who asked for it: an account's id, or the part that did.
	Actor string `json:"actor"`

	EffectDigest string `json:"effect_digest"`
	// PlanBytesDigest is DigestBytes of the pinned plan, which is applied as it
	// is. Empty where no plan bytes exist.
	PlanBytesDigest string `json:"plan_bytes_digest"`
	Fence           int64  `json:"fence"`
	// Nonce makes a mutation unique; see NewNonce and NonceFile.
	Nonce string `json:"nonce"`
}
