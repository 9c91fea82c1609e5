package keys

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// sealForm is orgs.seal_form of an org all of whose rows name their purpose.
const sealForm = 2

// Reseal seals again what is kept at rest in the first form, which names no
// purpose, org by org. It is called before anything is served: afterwards the
// first form opens nowhere. An org is done once, and that is in its chain.
func (k *Ring) Reseal(ctx context.Context, st *database.Store) error {
	var orgs []string
	err := st.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		orgs, err = tx.AllOrgIDs(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("list orgs: %w", err)
	}
	for _, org := range orgs {
		if err := st.Tx(ctx, org, k.resealOrg); err != nil {
			return fmt.Errorf("seal what org %s has at rest again: %w", org, err)
		}
	}
	return nil
}

func (k *Ring) resealOrg(ctx context.Context, tx *database.Tx) error {
	form, err := tx.LockOrgSealForm(ctx)
	if err != nil || form >= sealForm {
		return err
	}
	count := 0
	for _, table := range []func(context.Context, *database.Tx) (int, error){k.resealKeys, k.resealInputs, k.resealVariables, k.resealAnswers, k.resealHandovers} {
		n, err := table(ctx, tx)
		if err != nil {
			return err
		}
		count += n
	}
	if err := tx.SetOrgSealForm(ctx, sealForm); err != nil {
		return err
	}
	return k.Audit(ctx, tx, "control plane", fmt.Sprintf("seal %d rows at rest again, each for its purpose", count))
}

func (k *Ring) resealKeys(ctx context.Context, tx *database.Tx) (int, error) {
	rows, err := tx.SealedKeys(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		sealed, err := k.reseal(KeyAtRest(tx.OrgID(), row.KeyID), row.PrivateSealed)
		if err != nil {
			return 0, err
		}
		if err := tx.SetSealedKey(ctx, ctldb.SetSealedKeyParams{ID: row.ID, Sealed: sealed}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (k *Ring) resealInputs(ctx context.Context, tx *database.Tx) (int, error) {
	rows, err := tx.SealedInputs(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		sealed, err := k.reseal(InputsAtRest(tx.OrgID(), row.InstallID, row.Version), row.Sealed)
		if err != nil {
			return 0, err
		}
		if err := tx.SetSealedInputs(ctx, ctldb.SetSealedInputsParams{InstallID: row.InstallID, Version: row.Version, Sealed: sealed}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (k *Ring) resealVariables(ctx context.Context, tx *database.Tx) (int, error) {
	rows, err := tx.SealedVariables(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		sealed, err := k.reseal(VariableAtRest(tx.OrgID(), row.AppID, row.Name), row.Sealed)
		if err != nil {
			return 0, err
		}
		if err := tx.SetSealedVariable(ctx, ctldb.SetSealedVariableParams{AppID: row.AppID, Name: row.Name, Sealed: sealed}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (k *Ring) resealAnswers(ctx context.Context, tx *database.Tx) (int, error) {
	rows, err := tx.SealedAnswers(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		sealed, err := k.reseal(AnswerAtRest(tx.OrgID(), row.AccountID, row.Key), row.Response)
		if err != nil {
			return 0, err
		}
		if err := tx.SetSealedAnswer(ctx, ctldb.SetSealedAnswerParams{AccountID: row.AccountID, Key: row.Key, Sealed: sealed}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (k *Ring) resealHandovers(ctx context.Context, tx *database.Tx) (int, error) {
	rows, err := tx.SealedHandovers(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		sealed, err := k.reseal(HandoverAtRest(tx.OrgID(), row.InstallID), row.Sealed)
		if err != nil {
			return 0, err
		}
		if err := tx.SetSealedHandover(ctx, ctldb.SetSealedHandoverParams{ID: row.ID, Sealed: base64.StdEncoding.EncodeToString(sealed)}); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// reseal returns the same plaintext, sealed for its purpose.
func (k *Ring) reseal(purpose seal.Purpose, sealed []byte) ([]byte, error) {
	if _, err := k.Open(purpose, sealed); !errors.Is(err, seal.ErrFirstForm) {
		return sealed, err // it names its purpose already
	}
	identity, err := k.master.Org(purpose.OrgID)
	if err != nil {
		return nil, err
	}
	plain, err := seal.OpenFirstForm(identity, sealed)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", purpose, err)
	}
	return k.Seal(purpose, plain)
}
