package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// maxPlannedInstalls is how many installs one plan shows. Who has more looks at
// some of them; the count covers all.
const maxPlannedInstalls = 200

// Effects that a deploy of the release of a config would have on what is live.
const (
	EffectNew       = "new"        // nothing is live yet
	EffectChanges   = "changes"    // what is live stands on something else
	EffectMayChange = "may_change" // only the build tells
	EffectOrphaned  = "orphaned"   // the config does not have it; it is left alone
)

// onlyProvision is said of sandboxes.
const onlyProvision = "; a deploy leaves the sandbox alone, a provision brings it"

// Effect is what becomes of one component of an install.
type Effect struct {
	Kind   model.ResourceKind
	Name   string
	Effect string
	Reason string
}

// InstallPlan says what a deploy of the release would change in an install.
type InstallPlan struct {
	ID, Name      string
	ReleaseID     string // where it stands; empty for nowhere
	ReleaseNumber int32
	Inputs        []DefaultChange
	Effects       []Effect
}

// live is what impact knows of a component that is there.
type live struct {
	Kind                      model.ResourceKind
	Name                      string
	BuildDigest, DeployDigest string
	Artifact                  string
}

// impact compares what a sync decided with what is live in one install. off
// tells which components are switched off there: these are left alone. It does
// no I/O.
func impact(d Decision, there []live, off func(component string) bool) []Effect {
	now := map[string]live{}
	for _, l := range there {
		now[string(l.Kind)+"/"+l.Name] = l
	}
	var all []Effect
	for _, it := range d.Items {
		if it.Kind == model.KindScripts {
			continue // an install has none: it accepts the actions that name them
		}
		l, isLive := now[it.key()]
		delete(now, it.key())
		if it.Kind == model.KindComponent && off(it.Name) {
			continue
		}
		e := Effect{Kind: it.Kind, Name: it.Name, Effect: EffectChanges}
		built := l.BuildDigest != it.BuildDigest || it.Artifact != "" && it.Artifact != l.Artifact
		settings := l.DeployDigest != it.DeployDigest
		switch {
		case !isLive:
			e.Effect, e.Reason = EffectNew, "it is not there yet"
		case built && settings:
			e.Reason = "another build and other settings"
		case built:
			e.Reason = "another build"
		case settings:
			e.Reason = "other settings"
		case it.Action == ActionBuild || it.BuildState != model.BuildSucceeded:
			e.Effect, e.Reason = EffectMayChange, it.Reason
		default:
			continue
		}
		if it.Kind == model.KindSandbox {
			e.Reason += onlyProvision
		}
		all = append(all, e)
	}
	for _, l := range there {
		if _, left := now[string(l.Kind)+"/"+l.Name]; left {
			all = append(all, Effect{Kind: l.Kind, Name: l.Name, Effect: EffectOrphaned, Reason: "the folder no longer has it; a deploy leaves it alone"})
		}
	}
	return all
}

// planInstalls says what the decision means for the installs of the app.
func (s *syncing) planInstalls(ctx context.Context) error {
	total, err := s.tx.CountInstallsToDeploy(ctx, s.out.App.ID)
	if err != nil {
		return err
	}
	s.out.InstallsTotal = int(total)
	rows, err := s.tx.InstallsOfApp(ctx, ctldb.InstallsOfAppParams{AppID: s.out.App.ID, Most: maxPlannedInstalls})
	if err != nil {
		return err
	}
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	revisions, err := s.tx.LiveRevisions(ctx, ids)
	if err != nil {
		return err
	}
	set, err := s.req.InputsSet.InputsSet(ctx, s.tx, ids)
	if err != nil {
		return err
	}
	before := defaultsBefore{}
	there := map[string][]live{}
	for _, r := range revisions {
		there[r.InstallID] = append(there[r.InstallID], live{
			Kind: r.Kind, Name: r.Name, BuildDigest: r.BuildDigest, DeployDigest: r.DeployDigest, Artifact: r.ArtifactDigest,
		})
	}
	for _, row := range rows {
		toggles := map[string]bool{}
		if err := json.Unmarshal(row.Toggles, &toggles); err != nil {
			return fmt.Errorf("read toggles of %s: %w", row.ID, err)
		}
		was, err := before.of(ctx, s.tx, row.ReleaseID)
		if err != nil {
			return err
		}
		off := switchedOff(s.folder, toggles)
		moved := defaultChanges(was, s.folder.Inputs, set[row.ID])
		s.out.Installs = append(s.out.Installs, InstallPlan{
			ID: row.ID, Name: row.Name, ReleaseID: row.ReleaseID, ReleaseNumber: row.ReleaseNumber, Inputs: moved,
			Effects: readers(impact(s.out.Decision, there[row.ID], off), s.out.Decision.without(off), s.folder, moved),
		})
	}
	return nil
}

// without is the decision without the components that are off.
func (d Decision) without(off func(component string) bool) Decision {
	d.Items = slices.DeleteFunc(slices.Clone(d.Items), func(it ItemDecision) bool { return it.Kind == model.KindComponent && off(it.Name) })
	return d
}

// switchedOff tells which components an install with these toggles does not
// get.
func switchedOff(app *appconfig.App, toggles map[string]bool) func(string) bool {
	return func(name string) bool {
		c := app.Component(name)
		return c != nil && !c.EnabledIn(toggles)
	}
}
