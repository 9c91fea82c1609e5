package terraform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/runner/engine/job"
)

// canonicalPlan is what a plan does, in bytes that are the same whenever it
// does the same: Terraform's own JSON without the time, with keys and sets in
// order, and the digest of the provider lock file. It holds values in clear.
func canonicalPlan(raw, lock []byte) ([]byte, error) {
	decoded, err := job.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	plan, ok := decoded.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read the plan: it is not an object")
	}
	delete(plan, "timestamp")
	for _, set := range []string{"relevant_attributes", "checks"} {
		if err := sortSet(plan[set]); err != nil {
			return nil, err
		}
	}
	whole := map[string]any{"plan": plan}
	if len(lock) > 0 {
		sum := sha256.Sum256(lock)
		whole["provider_lock"] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return job.Marshal(whole)
}

// sortSet orders a list that Terraform writes in no particular order.
func sortSet(v any) error {
	list, _ := v.([]any)
	var failed error
	slices.SortFunc(list, func(a, b any) int {
		x, err := job.Marshal(a)
		if err != nil {
			failed = err
		}
		y, err := job.Marshal(b)
		if err != nil {
			failed = err
		}
		return bytes.Compare(x, y)
	})
	return failed
}
