package keys

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Ring opens and closes what is sealed for orgs at rest, and holds their
// dispatch keys once they are opened. It is safe for concurrent use.
type Ring struct {
	master *seal.MasterKey

	mu       sync.Mutex
	dispatch map[string]ed25519.PrivateKey // by org
}

// New makes a keyring of the control plane's master key.
func New(master *seal.MasterKey) *Ring {
	return &Ring{master: master, dispatch: map[string]ed25519.PrivateKey{}}
}

// Seal closes bytes for the purpose's org, to be stored in the row that the
// purpose names.
func (k *Ring) Seal(purpose seal.Purpose, plain []byte) ([]byte, error) {
	identity, err := k.master.Org(purpose.OrgID)
	if err != nil {
		return nil, err
	}
	return seal.Seal([]string{identity.Recipient()}, purpose, plain)
}

// Open opens what Seal closed for the same row.
func (k *Ring) Open(purpose seal.Purpose, sealed []byte) ([]byte, error) {
	identity, err := k.master.Org(purpose.OrgID)
	if err != nil {
		return nil, err
	}
	return seal.Open(identity, purpose, sealed)
}

// Dispatch returns the key with which the control plane signs orders, settings
// and the chain of the transaction's org.
func (k *Ring) Dispatch(ctx context.Context, tx *database.Tx) (ed25519.PrivateKey, error) {
	k.mu.Lock()
	key := k.dispatch[tx.OrgID()]
	k.mu.Unlock()
	if key != nil {
		return key, nil
	}
	row, err := tx.GetDispatchKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read dispatch key: %w", err)
	}
	text, err := k.Open(KeyAtRest(tx.OrgID(), row.KeyID), row.PrivateSealed)
	if err != nil {
		return nil, fmt.Errorf("open dispatch key: %w", err)
	}
	key, err = capsule.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("open dispatch key: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dispatch[tx.OrgID()] = key
	return key, nil
}

// CreateDispatch makes the dispatch key of the transaction's org, which is new
// and has none.
func (k *Ring) CreateDispatch(ctx context.Context, tx *database.Tx) error {
	public, private, err := capsule.GenerateKey()
	if err != nil {
		return err
	}
	text, err := capsule.MarshalPrivateKey(private)
	if err != nil {
		return err
	}
	sealed, err := k.Seal(KeyAtRest(tx.OrgID(), capsule.KeyID(public)), text)
	if err != nil {
		return err
	}
	_, err = tx.InsertKey(ctx, ctldb.InsertKeyParams{
		ID: id.New(id.Key), Purpose: "dispatch", Algorithm: "ed25519",
		KeyID: capsule.KeyID(public), PublicKey: capsule.EncodePublicKey(public), PrivateSealed: sealed,
	})
	return err
}
