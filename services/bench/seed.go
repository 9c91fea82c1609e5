package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	madeBy       = "bench"
	enrolWithin  = time.Hour
	installBatch = 100 // per transaction
)

// runner is the row of an Install Runner with its unused enrolment secret.
type runner struct {
	id, orgID, installID string
	secret               string
	// orders is the key that the runner's orders are signed with.
	orders ed25519.PrivateKey
}

// seed makes an app, and n installs of it with a runner each, in an org that it makes when
// orgID is empty.
func seed(ctx context.Context, st *store.Store, n int, orgID string) ([]runner, error) {
	customer, app := id.New(id.Customer), id.New(id.App)
	made := orgID == ""
	if made {
		orgID = id.New(id.Org)
	}
	err := st.Tx(ctx, orgID, func(ctx context.Context, tx *store.Tx) error {
		q := ctldb.New(tx.DB())
		if made {
			if _, err := q.InsertOrg(ctx, "bench"); err != nil {
				return err
			}
		}
		if _, err := q.InsertCustomer(ctx, ctldb.InsertCustomerParams{ID: customer, Name: "bench", Labels: none}); err != nil {
			return err
		}
		_, err := q.InsertApp(ctx, ctldb.InsertAppParams{ID: app, Name: "bench", Labels: none})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make org and app: %w", err)
	}
	runners := make([]runner, n)
	for from := 0; from < n; from += installBatch {
		err := st.Tx(ctx, orgID, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < min(from+installBatch, n); i++ {
				if runners[i], err = seedRunner(ctx, tx, ctldb.InsertInstallParams{CustomerID: customer, AppID: app, Name: fmt.Sprintf("bench-%d", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("make installs: %w", err)
		}
	}
	return runners, nil
}

// none is an empty document.
var none = json.RawMessage(`{}`)

// seedRunner makes an install of a customer and an app, and its runner.
func seedRunner(ctx context.Context, tx *store.Tx, install ctldb.InsertInstallParams) (runner, error) {
	_, key, err := capsule.GenerateKey()
	if err != nil {
		return runner{}, err
	}
	r := runner{id: id.New(id.Runner), orgID: tx.OrgID(), installID: id.New(id.Install), orders: key}
	q := ctldb.New(tx.DB())
	install.ID, install.StackKind, install.ApprovalOption, install.Labels, install.CreatedBy = r.installID, "local", "prompt", none, madeBy
	if _, err := q.InsertInstall(ctx, install); err != nil {
		return r, err
	}
	if _, err := q.InsertInstallRunner(ctx, ctldb.InsertInstallRunnerParams{ID: r.id, InstallID: &r.installID, Name: install.Name}); err != nil {
		return r, err
	}
	var hash []byte
	r.secret, hash = auth.NewSecret(auth.EnrolmentPrefix)
	_, err = q.InsertEnrolment(ctx, ctldb.InsertEnrolmentParams{
		ID: id.New(id.Enrolment), RunnerID: r.id, SecretHash: hash, CreatedBy: madeBy, ExpiresAt: time.Now().Add(enrolWithin),
	})
	return r, err
}
