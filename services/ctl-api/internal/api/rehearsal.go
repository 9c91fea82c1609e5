package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/statetree"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

func rehearsalOutputs(o *apigen.RehearsalOutputs) rehearsal.Outputs {
	if o == nil {
		return rehearsal.Outputs{}
	}
	return rehearsal.Outputs{Stack: o.Stack, Sandbox: o.Sandbox, Components: o.Components, CloudAccount: o.CloudAccount}
}

// addRehearsed adds to a rehearsal what it has in the place of a cloud, as of its
// newest state.
func addRehearsed(ctx context.Context, tx *database.Tx, view *apigen.Install) error {
	if view.Rehearsal == nil {
		return nil
	}
	row, err := tx.GetStateTree(ctx, ctldb.GetStateTreeParams{InstallID: view.ID})
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(row.Tree, &tree); err != nil {
		return fmt.Errorf("read state %d: %w", row.Version, err)
	}
	return decode("rehearsal", tree[statetree.RehearsalKey], view.Rehearsal)
}

// addRehearsedHow says of a resource that a stand-in of it is live.
func addRehearsedHow(view *apigen.Resource, said json.RawMessage) {
	var how *jobspec.Rehearsed
	if len(said) == 0 || json.Unmarshal(said, &how) != nil || how == nil || view.State != apigen.ResourceState(model.ResourceLive) {
		return
	}
	view.State = apigen.ResourceStateRehearsed
	view.Rehearsed = rehearsedView(how)
}

func rehearsedView(r *jobspec.Rehearsed) *apigen.Rehearsed {
	return &apigen.Rehearsed{How: apigen.RehearsedHow(r.How), Why: r.Why, Providers: r.Providers, Unreachable: r.Unreachable, MadeUp: r.MadeUp}
}
