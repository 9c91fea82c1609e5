package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// The token of an upload pushes runner versions. The database gives out none that pushes
// anything else, whatever ctl-api asks for.
func TestRunnerVersionUpload(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	me, err := admin.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	org, token := me.JSON200.Org.ID, me.JSON200.TokenID
	made, err := admin.CreateRunnerVersionUploadWithResponse(t.Context(), &ctlapi.CreateRunnerVersionUploadParams{})
	must(t, made, err, http.StatusCreated)
	if got := made.JSON201.Repositories; got != org+"/runner.versions" {
		t.Errorf("it pushes to %q", got)
	}
	for _, repositories := range []string{"", org, org + "/hello", org + "/runner.versions/more", "another/runner.versions"} {
		err := d.store.Tx(t.Context(), org, func(ctx context.Context, tx *database.Tx) error {
			_, err := tx.AddRegistryToken(ctx, ctldb.AddRegistryTokenParams{
				Hash: []byte("of " + repositories), TokenID: token, Actions: []string{"pull", "push"}, Repositories: repositories, Seconds: 60,
			})
			return err
		})
		if err == nil {
			t.Errorf("a token was made that pushes to %q", repositories)
		}
	}
}
