// Package depot is the builder's own way into its registry, and the registry's
// way to the tokens in the database.
//
//	Tokens ── who stands behind a token (registry.TokenLookup)
//	Depot  ── push a source archive, ask whether an artifact is there
//
// The builder has no back door: it uses the registry over HTTP as runners do,
// with a token of its own per org that lives for minutes.
package depot

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

const (
	// tokenLifetime outlives the push of a large archive, and little more.
	tokenLifetime = 15 * time.Minute

	// tokenReserve is left when a cached token is used again.
	tokenReserve = 10 * time.Minute

	// tokenRest is how long ended tokens stay, for people who look for one.
	tokenRest = time.Hour

	// headTimeout is for one question on this machine.
	headTimeout = 30 * time.Second
)

// Depot uses the registry at a loopback address. It is safe for concurrent use.
type Depot struct {
	store *database.Store
	host  string // host:port
	temp  string

	mu     sync.Mutex
	tokens map[string]ownToken // by org
}

type ownToken struct {
	text    string
	expires time.Time
}

// New makes a Depot for the registry at host ("127.0.0.1:8703"); temp is a
// directory for archives that are being packed, "" for the system's.
func New(s *database.Store, host, temp string) *Depot {
	return &Depot{store: s, host: host, temp: temp, tokens: map[string]ownToken{}}
}

// Has asks whether an artifact is complete in the registry.
func (d *Depot) Has(ctx context.Context, orgID, repository, digest string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	token, err := d.token(ctx, orgID)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+d.host+"/v2/"+repository+"/manifests/"+digest, nil)
	if err != nil {
		return false, fmt.Errorf("look for artifact: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Add("Accept", ocispec.MediaTypeImageManifest)
	req.Header.Add("Accept", ocispec.MediaTypeImageIndex)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, fmt.Errorf("look for artifact: %w", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // a HEAD has no body
	switch res.StatusCode {
	case http.StatusOK:
		return res.Header.Get("Docker-Content-Digest") == digest, nil
	case http.StatusNotFound, http.StatusBadRequest: // not there, or cannot be
		return false, nil
	}
	return false, fmt.Errorf("look for artifact: the registry answered %s", res.Status)
}

func (d *Depot) remote(orgID, repository string) oci.Remote {
	return oci.Remote{
		Registry: d.host, Repository: repository, PlainHTTP: true,
		Token: func(ctx context.Context) (string, error) { return d.token(ctx, orgID) },
	}
}

// token is the builder's own for an org. Making one also drops those of the org
// that ended a while ago.
func (d *Depot) token(ctx context.Context, orgID string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.tokens[orgID]; time.Until(have.expires) > tokenReserve {
		return have.text, nil
	}
	text, hash := registry.NewToken()
	made := ownToken{text: text}
	err := d.store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) (err error) {
		if err := tx.BuilderDropTokens(ctx, tokenRest.Seconds()); err != nil {
			return err
		}
		made.expires, err = tx.BuilderAddToken(ctx, builderdb.BuilderAddTokenParams{
			Hash: hash, Actions: []string{string(registry.ActionPull), string(registry.ActionPush)}, Seconds: tokenLifetime.Seconds(),
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("make a registry token: %w", err)
	}
	d.tokens[orgID] = made
	return text, nil
}
