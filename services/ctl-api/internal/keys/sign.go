package keys

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
)

// Sign signs a payload with the dispatch key of the transaction's org and
// returns the DSSE envelope as JSON.
func (k *Ring) Sign(ctx context.Context, tx *database.Tx, payloadType string, payload any) (json.RawMessage, error) {
	key, err := k.Dispatch(ctx, tx)
	if err != nil {
		return nil, err
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("sign: the dispatch key is no Ed25519 key")
	}
	envelope, err := capsule.Sign(key, capsule.KeyID(public), payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return json.Marshal(envelope)
}
