package destruction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestConfirmed(t *testing.T) {
	t.Parallel()
	deed := destruction.Deed{What: "the deprovision of install acme", Name: "acme", Goes: []string{"component web", "sandbox"}}
	for _, tt := range []struct {
		name    string
		deed    destruction.Deed
		confirm string
		says    string // empty when it is confirmed
	}{
		{name: "the name", deed: deed, confirm: "acme"},
		{name: "nothing", deed: deed, says: "is not confirmed; nothing was done"},
		{name: "another name", deed: deed, confirm: "acne", says: `is confirmed with "acne" instead of "acme"`},
		{name: "other letters", deed: deed, confirm: "Acme", says: `"Acme" instead of "acme"`},
		{name: "spaces around it", deed: deed, confirm: " acme ", says: "instead of"},
		{name: "yes", deed: deed, confirm: "yes", says: "instead of"},
		{name: "a deed that forgot its name", deed: destruction.Deed{What: "it"}, says: "it is not confirmed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.deed.Confirmed(tt.confirm)
			if tt.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want ErrInvalid with %q", err, tt.says)
			}
			shown := fault.From(err)
			var goes []string
			for _, f := range shown.Errors {
				goes = append(goes, f.Detail)
			}
			if diff := cmp.Diff(tt.deed.Goes, goes); diff != "" || shown.Code != destruction.Code || !strings.Contains(shown.Remedy, "--confirm "+tt.deed.Name) {
				t.Errorf("code %s, remedy %q, what goes (-want +got):\n%s", shown.Code, shown.Remedy, diff)
			}
		})
	}
}
