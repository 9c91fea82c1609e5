package rehearse

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// release syncs the folder with its stand-ins and waits for the release. again is
// true when builds failed: their parts have stand-ins now.
func (r *run) release(ctx context.Context, round int) (_ *ctlapi.SyncResult, again bool, _ error) {
	began := r.Now()
	dir, err := os.MkdirTemp("", "berth-rehearsal-")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is needed again
	if err := stage.Write(r.folder, dir, r.app, r.changes); err != nil {
		return nil, false, err
	}
	var said strings.Builder
	r.sync.Say = r.Err
	if round > 0 {
		r.sync.Say = &said // the same again
	}
	read, err := sync.Read(ctx, dir, r.sync)
	if err != nil {
		for line := range strings.Lines(said.String()) {
			output.Println(r.Err, strings.TrimSuffix(line, "\n"))
		}
		return nil, false, err
	}
	if err := sync.Upload(ctx, r.client, read.Archives, io.Discard); err != nil {
		return nil, false, err
	}
	read.Request.Origin = sync.Origin(ctx, r.folder, "")
	if r.own {
		read.Request.Prune, read.Request.Confirm = true, read.App // nothing real is in it
	}
	resp, err := r.client.SyncAppWithResponse(ctx, read.App, &ctlapi.SyncAppParams{}, read.Request)
	if err != nil {
		return nil, false, err
	}
	result, err := api.Body(resp.JSON201, resp.JSON200)
	if err != nil {
		return nil, false, err
	}
	if err := r.makeUpVariables(ctx); err != nil {
		return nil, false, err
	}
	trouble, err := r.await(ctx, result)
	r.spent("build", began)
	if err != nil || len(trouble) == 0 {
		return result, false, err
	}
	slices.SortFunc(trouble, func(a, b ctlapi.ConfigItem) int { return strings.Compare(a.Component, b.Component) })
	tried := maps.Clone(r.changes.StandIns)
	for _, item := range trouble {
		users := stage.UsersOf(r.app, item.Component, string(item.Kind))
		if !slices.ContainsFunc(users, func(part stage.Part) bool { return tried[part] == "" }) {
			return nil, false, fmt.Errorf("the stand-in of %s cannot be built: %s", item.Component, api.Value(item.BuildError))
		}
		for _, part := range users {
			if r.changes.StandIns[part] == "" { // of several builds of a part the first says why
				r.leaveOut(part, judgeBuild(item))
			}
		}
	}
	return nil, true, nil
}

// makeUpVariables sets the variables that templates read and the app does not have,
// in an app that is only for rehearsals.
func (r *run) makeUpVariables(ctx context.Context) error {
	reads := check.NamedVariableReads(r.app)
	if !r.own || len(reads) == 0 {
		return nil
	}
	plain := false
	for _, read := range reads {
		value := ctlapi.AppVariableRequest{Value: "rehearsal-" + read.Variable, Sensitive: &plain}
		if _, err := r.client.SetAppVariableWithResponse(ctx, r.sync.App, read.Variable, &ctlapi.SetAppVariableParams{}, value); err != nil {
			return err
		}
	}
	return nil
}

const (
	// longPoll is how long one question about builds may be held.
	longPoll = "5s"
	// patience is how long a source may take that cannot be had now.
	patience = 5 * time.Second
	// tryingAgain ends what a build says that will ask its source again.
	tryingAgain = "; trying again"
)

// await waits for the release of a config, or for all of its builds to have ended or
// to be without hope. It returns the latter.
func (r *run) await(ctx context.Context, result *ctlapi.SyncResult) ([]ctlapi.ConfigItem, error) {
	if result.Release != nil {
		return nil, nil
	}
	var noted time.Time
	var after int64
	told := map[string]string{}
	for {
		params := &ctlapi.GetConfigParams{AfterVersion: &after}
		if after > 0 {
			params.Wait = api.Optional(longPoll)
		}
		resp, err := r.client.GetConfigWithResponse(ctx, api.Value(result.Config).ID, params)
		if err != nil {
			return nil, err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return nil, err
		}
		after = max(config.Version, 1)
		if config.State == ctlapi.ConfigStateReleased {
			result.Release = config.Release
			return nil, nil
		}
		b := sort(config.Items)
		for _, item := range config.Items {
			if state := string(item.BuildState); told[item.Component] != state && state != string(ctlapi.BuildStateQueued) {
				told[item.Component] = state
				r.screen.Print(fmt.Sprintf("%s  build of %s: %s", r.Now().Format(time.TimeOnly), item.Component, state))
			}
		}
		if len(b.noted) > 0 && noted.IsZero() {
			noted = r.Now()
		}
		if b.open > 0 || len(b.noted) > 0 && r.Now().Sub(noted) < patience {
			continue
		}
		if len(b.noted)+len(b.failed) == 0 {
			continue // the release is being made
		}
		for _, item := range b.noted {
			if _, err := r.client.CancelBuildWithResponse(ctx, item.BuildID, &ctlapi.CancelBuildParams{}); err != nil {
				return nil, err
			}
		}
		return append(b.failed, b.noted...), nil
	}
}

// builds are those of a config, by how they stand.
type builds struct {
	open          int                 // they run, or will
	noted, failed []ctlapi.ConfigItem // noted: their source cannot be had now
}

func sort(items []ctlapi.ConfigItem) (b builds) {
	for _, item := range items {
		switch item.BuildState {
		case ctlapi.BuildStateSucceeded:
		case ctlapi.BuildStateFailed, ctlapi.BuildStateCancelled:
			b.failed = append(b.failed, item)
		default:
			if strings.HasSuffix(api.Value(item.BuildError), tryingAgain) {
				b.noted = append(b.noted, item)
			} else {
				b.open++
			}
		}
	}
	return b
}
