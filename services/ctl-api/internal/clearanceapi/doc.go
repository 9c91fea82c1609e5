// Package clearanceapi answers the routes about who has to agree to changes and when
// none is carried out: policies of approval, freezes and their overrides, pauses,
// and the answers to several changes of an install. It is mounted by package api.
package clearanceapi

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Clearance are the routes. Read and Write are as in package eventapi.
type Clearance struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	// Approve records the caller's approval of a change, in the transaction.
	Approve func(ctx context.Context, tx *database.Tx, seen Seen) error
	// Workflow and Install show one.
	Workflow func(ctx context.Context, tx *database.Tx, id string) (apigen.Workflow, error)
	Install  func(ctx context.Context, tx *database.Tx, ref string) (apigen.Install, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Seen is a change with the digest of what a person saw of it.
type Seen struct{ ChangeID, EffectDigest, Note string }

func (h *Clearance) now() time.Time {
	if h.Now != nil {
		return h.Now().UTC()
	}
	return time.Now().UTC()
}

// scope is an app, or an install with its app.
type scope struct {
	app     ctldb.App
	install *ctldb.Install
}

func (h *Clearance) scopeOf(ctx context.Context, tx *database.Tx, app, install string) (s scope, err error) {
	if install != "" {
		row, err := installs.Find(ctx, tx, install)
		if err != nil {
			return s, err
		}
		s.install, app = &row, row.AppID
	}
	s.app, err = tx.FindApp(ctx, app)
	if errors.Is(err, fault.ErrNotFound) {
		err = fault.Newf(fault.ErrNotFound, "there is no app %q", app)
	}
	return s, err
}

// name is how the org's chain names it.
func (s scope) name() string {
	if s.install != nil {
		return "install " + s.install.Name
	}
	return "app " + s.app.Name
}

func (s scope) ids() (appID, installID *string) {
	if s.install != nil {
		return nil, &s.install.ID
	}
	return &s.app.ID, nil
}

// lock excludes every grant in the installs that it is about, and answers them.
func (s scope) lock(ctx context.Context, tx *database.Tx) ([]string, error) {
	if s.install != nil {
		_, err := tx.LockInstallRow(ctx, s.install.ID)
		return []string{s.install.ID}, err
	}
	return tx.LockInstallsOfApp(ctx, s.app.ID)
}
