// Package timelineapi answers the routes about the past of an install: its state tree
// through time, what it was at a time, what happened, and what changed before it
// broke. It is mounted by package api.
package timelineapi

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/snapshot"
	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Past are the routes. Read is as in package eventapi.
type Past struct {
	Read      func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Snapshots snapshot.Reader
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Past) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

func (h *Past) orNow(at *time.Time) time.Time {
	if at != nil {
		return *at
	}
	return h.now()
}

// versionAt finds the version of an install's state tree that a request names: by
// number, by time, or the newest when it is empty (0).
func versionAt(ctx context.Context, tx *database.Tx, install ctldb.Install, ref string) (int32, error) {
	if ref == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(ref, 10, 32); err == nil && n > 0 {
		return int32(n), nil
	}
	at, err := time.Parse(time.RFC3339Nano, ref)
	if err != nil {
		return 0, fault.With(fault.Newf(fault.ErrInvalid, "%q is neither a time nor the number of a version", ref),
			fault.Remedy("write a time as 2026-11-26T10:00:00Z, or a number as `berth installs state --versions` shows them"))
	}
	version, err := tx.StateVersionAt(ctx, ctldb.StateVersionAtParams{InstallID: install.ID, At: at})
	if errors.Is(err, fault.ErrNotFound) {
		return 0, fault.With(fault.Newf(fault.ErrConflict, "install %s had no state at %s", install.Name, ref), fault.Code("history_begins"),
			fault.Remedy("see its versions: `berth installs state %s --versions`", install.Name))
	}
	return version, err
}

// treeAt reads the tree that a request names.
func treeAt(ctx context.Context, tx *database.Tx, install ctldb.Install, ref string) (ctldb.StateVersion, error) {
	version, err := versionAt(ctx, tx, install, ref)
	if err != nil {
		return ctldb.StateVersion{}, err
	}
	row, err := tx.GetStateTree(ctx, ctldb.GetStateTreeParams{InstallID: install.ID, Version: version})
	if errors.Is(err, fault.ErrNotFound) {
		return row, fault.Newf(fault.ErrNotFound, "install %s has no such version of its state yet", install.Name)
	}
	return row, err
}

func changesView(changes []treediff.Change) []apigen.TreeChange {
	out := make([]apigen.TreeChange, 0, len(changes))
	for _, c := range changes {
		out = append(out, apigen.TreeChange{Path: c.Path, Op: apigen.TreeChangeOp(c.Op), Old: orNone(c.Old), New: orNone(c.New)})
	}
	return out
}

func orNone(raw json.RawMessage) *json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return &raw
}
