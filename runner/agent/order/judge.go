package order

import (
	"crypto/ed25519"
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/weakened"
)

// skew is how far the clock of the control plane may be ahead.
const skew = 5 * time.Minute

// Keys are the public halves that the customer's side pinned, by their ids.
type Keys struct {
	// Dispatch signs orders for installs, Builder those for builds. Neither
	// counts for the other.
	Dispatch, Builder map[string]ed25519.PublicKey
}

// Facts are what the runner knows without looking at the order.
type Facts struct {
	OrgID, InstallID, RunnerID string
	// Build: this is a Build Runner.
	Build bool
	// MachineKeyID is of the key with which this machine proves who it is.
	MachineKeyID  string
	RunnerVersion string

	// JobID and Attempt are the assignment's.
	JobID   string
	Attempt int
	// Spec is what came with the order, the digests are of its bytes as they came.
	Spec                    jobspec.Spec
	SpecDigest, StateDigest string

	// Past, Spent and Floor are the ledger's, NonceUsed is of the nonces.
	Past      func(job string) Past
	Spent     func(origin, effect string) Spent
	Floor     time.Time
	NonceUsed func(nonce string) bool
	Now       time.Time
}

// Verdict is the answer to an order. The zero Outcome means: obey.
type Verdict struct {
	Outcome jobspec.Outcome
	Differs []jobspec.Difference
	// Order is the verified one; zero when its signature was refused.
	Order capsule.Order
	// Rule is what the work may do.
	Rule Rule
}

// Judge verifies the order of a job, whatever it is to do, and compares it with
// the facts. Every field that stands against it is named.
func Judge(keys Keys, env *capsule.Envelope, f Facts) Verdict {
	if env == nil {
		return refuse(capsule.Order{}, jobspec.Difference{Field: "order", Want: "a signed order", Got: "none"})
	}
	trusted, whose := keys.Dispatch, "dispatch"
	if f.Build {
		trusted, whose = keys.Builder, "builder"
	}
	var o capsule.Order
	if err := open(trusted, *env, &o); err != nil {
		return refuse(capsule.Order{}, jobspec.Difference{Field: "signature", Want: "one of a pinned " + whose + " key", Got: err.Error()})
	}
	rule, known := RuleOf(jobspec.Kind(o.Kind), jobspec.Operation(o.Operation))
	d := &differences{}
	d.add(!known, "operation", "work that this runner knows", o.Operation+" of "+o.Kind)
	d.add(rule.Own, "operation", "work that an order may ask for", o.Operation)
	build := o.Operation == string(jobspec.OperationBuild)
	d.add(known && build != f.Build, "operation", "one for a runner of this kind", o.Operation)
	d.names(o, f)
	d.add(o.SpecDigest != f.SpecDigest, "spec_digest", f.SpecDigest, o.SpecDigest)
	d.add(o.StateDigest != f.StateDigest, "state_digest", f.StateDigest, o.StateDigest)
	d.add(rule.Pinned && f.StateDigest != "", "state_digest", "no state: the apply gets only what its plan pinned", f.StateDigest)
	d.lifetime(o, f)
	d.starts(o, f, rule)
	d.add(!capsule.Reaches(f.RunnerVersion, o.MinRunnerVersion), "min_runner_version", f.RunnerVersion, o.MinRunnerVersion)
	d.mutation(o, f, rule)
	v := Verdict{Differs: d.list, Order: o, Rule: rule}
	switch {
	case len(d.list) == 0:
	case d.late == len(d.list) && o.ChangeID != "":
		v.Outcome = jobspec.OutcomeStale // nobody meant harm: the change is planned again
	default:
		v.Outcome = jobspec.OutcomeRefused
	}
	return v
}

// open verifies an order.
func open(trusted map[string]ed25519.PublicKey, env capsule.Envelope, o *capsule.Order) error {
	if weakened.Is(weakened.OrderSignature) {
		return weakened.Decode(env.Payload, o)
	}
	_, err := capsule.Verify(trusted, capsule.OrderType, env, o)
	return err
}

// weakenedFields are those that an executable which is weakened on purpose does not look at.
var weakenedFields = map[weakened.Defence][]string{
	weakened.OrderSpec: {"spec_digest"}, weakened.OrderLifetime: {"expires_at"}, weakened.EffectOnce: {"effect_digest", "origin_id"},
	weakened.EffectDigest: {"effect_digest"}, weakened.Fence: {"fence"},
}

func overlooked(field string) bool {
	for defence, fields := range weakenedFields {
		if weakened.Is(defence) && slices.Contains(fields, field) {
			return true
		}
	}
	return false
}

// differences collects what stands against an order.
type differences struct {
	list []jobspec.Difference
	late int // how many of them only say that it is too late for this order
}

func (d *differences) add(bad bool, field, want, got string) {
	if bad && !overlooked(field) {
		d.list = append(d.list, jobspec.Difference{Field: field, Want: want, Got: got})
	}
}

func (d *differences) addLate(bad bool, field, want, got string) {
	d.add(bad, field, want, got)
	if bad && !overlooked(field) {
		d.late++
	}
}

// names compares who and what the order is for. An order that names nobody is
// for nobody.
func (d *differences) names(o capsule.Order, f Facts) {
	same := func(field, want, got string) { d.add(want != got, field, want, got) }
	needed := func(field, want, got string) { d.add(want != got || got == "", field, want, got) }
	needed("org_id", f.OrgID, o.OrgID)
	same("install_id", f.InstallID, o.InstallID)
	d.add(!f.Build && o.InstallID == "", "install_id", f.InstallID, "")
	needed("runner_id", f.RunnerID, o.RunnerID)
	needed("machine_key_id", f.MachineKeyID, o.MachineKeyID)
	needed("job_id", f.JobID, o.JobID)
	// What the spec says is under the digest; these hold the two to each other.
	same("job_id", o.JobID, f.Spec.JobID)
	same("org_id", o.OrgID, f.Spec.OrgID)
	same("install_id", o.InstallID, f.Spec.InstallID)
	needed("kind", string(f.Spec.Kind), o.Kind)
	needed("operation", string(f.Spec.Operation), o.Operation)
	resource := ""
	if f.Spec.Resource != nil {
		resource = f.Spec.Resource.ID
	}
	same("resource_id", resource, o.ResourceID)
	same("change_id", f.Spec.ChangeID, o.ChangeID)
	same("build_id", f.Spec.BuildID, o.BuildID)
	d.add((o.ChangeID == "") != (o.OriginID == ""), "origin_id", "the first change of the line that the change is of", o.OriginID)
}

func (d *differences) lifetime(o capsule.Order, f Facts) {
	d.add(o.IssuedAt.IsZero() || o.IssuedAt.After(f.Now.Add(skew)), "issued_at", "by "+clock(f.Now.Add(skew)), clock(o.IssuedAt))
	d.add(o.ExpiresAt.Sub(o.IssuedAt) > capsule.OrderLifetime, "expires_at", "at most "+capsule.OrderLifetime.String()+" after it was issued", clock(o.ExpiresAt))
	d.addLate(!f.Now.Before(o.ExpiresAt), "expires_at", "after "+clock(f.Now), clock(o.ExpiresAt))
	d.addLate(f.Now.Before(o.ExpiresAt) && o.ExpiresAt.Unix() <= f.Floor.Unix(), "expires_at", "after "+clock(f.Floor)+", the last time that this runner looked", clock(o.ExpiresAt))
}

func (d *differences) starts(o capsule.Order, f Facts, rule Rule) {
	d.add(o.Starts < 1 || rule.Starts > 0 && o.Starts > rule.Starts, "starts", "1 to "+strconv.Itoa(rule.Starts), strconv.Itoa(o.Starts))
	past := f.Past(o.JobID)
	if weakened.Is(weakened.OrderOnce) {
		past = Past{}
	}
	switch {
	case past.Ended:
		d.add(true, "job_id", "a job that has not ended", o.JobID)
	case past.Starts > 0 && f.Attempt <= past.Attempt:
		d.add(true, "attempt", "above "+strconv.Itoa(past.Attempt), strconv.Itoa(f.Attempt))
	case past.Starts >= o.Starts && o.Starts > 0:
		d.addLate(true, "starts", "fewer than "+strconv.Itoa(o.Starts), strconv.Itoa(past.Starts))
	}
}

// mutation compares what only orders to change something have, and only they may.
func (d *differences) mutation(o capsule.Order, f Facts, rule Rule) {
	if !rule.Mutates {
		d.add(o.EffectDigest != "", "effect_digest", "none: the work changes nothing", o.EffectDigest)
		d.add(o.PlanBytesDigest != "", "plan_bytes_digest", "none: the work changes nothing", o.PlanBytesDigest)
		d.add(o.Fence != 0, "fence", "none: the work changes nothing", strconv.FormatInt(o.Fence, 10))
		d.add(o.Nonce != "", "nonce", "none: the work changes nothing", o.Nonce)
		return
	}
	d.add(o.EffectDigest == "", "effect_digest", "one that was approved", "none")
	d.add(o.Nonce == "", "nonce", "a nonce", "none")
	d.add(f.NonceUsed != nil && o.Nonce != "" && f.NonceUsed(o.Nonce), "nonce", "one that was never used", o.Nonce)
	if f.Spent == nil {
		return
	}
	spent := f.Spent(o.OriginID, o.EffectDigest)
	d.add(spent.Applied, "effect_digest", "one that is not there yet", "applied before")
	d.add(!spent.Applied && spent.Tries >= MaxTries, "effect_digest", "at most "+strconv.Itoa(MaxTries)+" tries", "tried "+strconv.Itoa(spent.Tries)+" times")
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func refuse(o capsule.Order, differs ...jobspec.Difference) Verdict {
	return Verdict{Outcome: jobspec.OutcomeRefused, Differs: differs, Order: o}
}
