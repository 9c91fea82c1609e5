package capsule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
)

// Tool is the program that brings an effect about.
type Tool struct {
	Name    string `json:"name"`    // "terraform", "bash"
	Version string `json:"version"` // as the tool reports it
	Digest  string `json:"digest"`  // of the executable's bytes
}

// Effect is what people approve: all that determines what a change does. A
// field that means nothing for a kind of change is empty; the table in
// docs/reference/orders.md says which. Digests are "sha256:…" unless said.
type Effect struct {
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"`
	// Target is where it happens: the cluster's uid, the cloud account, or
	// the machine id for the local stack.
	Target string `json:"target"`
	// ChangeKind is deploy, teardown, script, …
	ChangeKind string `json:"change_kind"`
	Component  string `json:"component"`
	ResourceID string `json:"resource_id"`

	ArtifactDigest string `json:"artifact_digest"`
	Tool           Tool   `json:"tool"`
	EngineDigest   string `json:"engine_digest"`
	PluginDigest   string `json:"plugin_digest"`

	// InputsDigest is salted (SaltedDigest): inputs may be guessable secrets.
	InputsDigest string `json:"inputs_digest"`
	// PlanDigest is DigestOf the canonical plan, not of the plan file.
	PlanDigest string `json:"plan_digest"`

	// FootprintDigest is of what the plan newly needs and exposes, see package footprint. It
	// is left out where nobody says, so that older effects keep their digests.
	FootprintDigest string `json:"footprint_digest,omitempty"`

	// Role is the identity in the customer's account that does it.
	Role string `json:"role"`
	// Lineage and Serial name the state that the plan was made on.
	Lineage string `json:"lineage"`
	Serial  int64  `json:"serial"`

	// GuardrailsDigest is of the rules that the plan was held against; empty
	// when there are none.
	GuardrailsDigest string `json:"guardrails_digest"`
	// Verdict is what these rules and the vendor's policies say: the guardrails' answer and
	// a digest of all verdicts, or Unevaluated.
	Verdict string `json:"verdict"`
}

// Unevaluated is the verdict on a plan that was held against no rules.
const Unevaluated = "unevaluated"

// Digest returns what is approved: the digest of the effect's canonical JSON.
// Two effects have the same digest only when all fields are equal.
func (e Effect) Digest() string {
	if digest, err := DigestOf(e); err == nil {
		return digest
	}
	// Text that is not UTF-8 or a serial past 2^53 has no canonical form. Such
	// an effect is still bound to one digest, over its quoted fields; it cannot
	// meet one of the above, because canonical JSON starts with a brace.
	h := sha256.New()
	for _, f := range fields(reflect.ValueOf(e), "") {
		_, _ = fmt.Fprintf(h, "%q=%q\n", f.name, f.text)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// FieldDiff is one field whose two values differ, under its JSON name
// ("tool.version"). The values are made for people.
type FieldDiff struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// Diff names each field in which a and b differ, in the order of the struct.
// It is empty exactly when their digests are equal.
func Diff(a, b Effect) []FieldDiff {
	var diffs []FieldDiff
	left, right := fields(reflect.ValueOf(a), ""), fields(reflect.ValueOf(b), "")
	for i := range left {
		if left[i].text != right[i].text {
			diffs = append(diffs, FieldDiff{Field: left[i].name, A: left[i].text, B: right[i].text})
		}
	}
	return diffs
}

type field struct{ name, text string }

// fields lists a struct's leaves under their JSON names. Going by reflection
// means that a new field of Effect cannot be forgotten in Diff.
func fields(v reflect.Value, prefix string) []field {
	var out []field
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if child := v.Field(i); child.Kind() == reflect.Struct {
			out = append(out, fields(child, prefix+name+".")...)
		} else {
			out = append(out, field{name: prefix + name, text: fmt.Sprint(child.Interface())})
		}
	}
	return out
}
