package capsule_test

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
)

func ExampleDiff() {
	approved := capsule.Effect{Component: "web", ArtifactDigest: "sha256:a", PlanDigest: "sha256:p", Verdict: capsule.Unevaluated}
	found := approved
	found.PlanDigest = "sha256:q"
	fmt.Println(approved.Digest() == found.Digest())
	for _, field := range capsule.Diff(approved, found) {
		fmt.Println(field.Field)
	}
	// Output:
	// false
	// plan_digest
}
