package api

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// registryTokenMinutes is how long a token of a person pulls when the request
// does not say; at most 720, by the contract and by the database.
const registryTokenMinutes = 60

// CreateRegistryToken makes a token that pulls from the org's registry, or from
// what belongs to one app in it.
func (s *Server) CreateRegistryToken(ctx context.Context, req apigen.CreateRegistryTokenRequestObject) (apigen.CreateRegistryTokenResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	address, err := url.Parse(s.RegistryURL)
	if err != nil {
		return nil, errors.New("BERTH_REGISTRY_URL cannot be read") // Config.Validate has refused it
	}
	lifetime := time.Duration(registryTokenMinutes) * time.Minute
	if minutes := req.Body.Minutes; minutes != nil {
		lifetime = time.Duration(*minutes) * time.Minute
	}
	token, hash := auth.NewSecret(auth.RegistryPrefix)
	out := apigen.CreateRegistryToken201JSONResponse{
		Host: address.Host, PlainHTTP: address.Scheme == "http", Username: p.AccountName, Secret: token, Repositories: p.OrgID,
	}
	err = s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if named := optional.Value(req.Body.App); named != "" {
			app, err := findApp(ctx, tx, named)
			if err != nil {
				return "", err
			}
			out.Repositories += "/" + oci.PathElement(app.Name, app.ID)
		}
		expires, err := tx.AddRegistryToken(ctx, ctldb.AddRegistryTokenParams{
			Hash: hash, TokenID: p.TokenID, Actions: []string{"pull"}, Repositories: out.Repositories, Seconds: lifetime.Seconds(),
		})
		if errors.Is(err, fault.ErrNotFound) {
			return "", fault.Newf(fault.ErrForbidden, "the token of this request was revoked")
		}
		out.ExpiresAt = expires.UTC()
		return fmt.Sprintf("create registry token of %s for %s until %s", p.AccountName, out.Repositories, out.ExpiresAt.Format(time.RFC3339)), err
	})
	return out, err
}
