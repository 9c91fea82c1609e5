package secret_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/runner-api/internal/secret"
)

func TestNew(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^brs_[0-9A-Za-z]{43}$`)
	seen := map[string]bool{}
	for range 1000 {
		text, hash := secret.New(secret.Session)
		if !form.MatchString(text) {
			t.Fatalf("%q does not look like %s", text, form)
		}
		if diff := cmp.Diff(secret.Hash(text), hash); diff != "" {
			t.Fatalf("hash of %q (-want +got):\n%s", text, diff)
		}
		if seen[text] {
			t.Fatalf("%q came twice", text)
		}
		seen[text] = true
	}
}
