package sync

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A Follower shows people how the builds of a config go.
type Follower struct {
	Client *api.Client
	Screen *follow.Screen
	Now    func() time.Time
	Err    io.Writer // receives the names of the builds that failed
}

// longPoll is how long one question may be held by the service.
const longPoll = "30s"

// Await follows the builds of a config until its release is made, which it notes
// in the result. A build that does not succeed is an error.
func (f Follower) Await(ctx context.Context, result *ctlapi.SyncResult) error {
	if result.Release != nil {
		return nil // nothing had to be built
	}
	told := map[string]string{}
	var after int64
	for {
		params := &ctlapi.GetConfigParams{AfterVersion: &after}
		if after > 0 {
			params.Wait = api.Optional(longPoll)
		}
		resp, err := f.Client.GetConfigWithResponse(ctx, api.Value(result.Config).ID, params)
		if err != nil {
			return err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		after = max(config.Version, 1)
		f.tell(config, told)
		switch config.State {
		case ctlapi.ConfigStateReleased:
			f.Screen.Clear()
			result.Release = config.Release
			return nil
		case ctlapi.ConfigStateFailed:
			f.Screen.Clear()
			return f.failed(config)
		}
	}
}

// tell shows the builds: all of them on a terminal, what moved elsewhere. A build
// that does not get on says why.
func (f Follower) tell(config *ctlapi.Config, told map[string]string) {
	block := []string{fmt.Sprintf("config %d of %s", config.Number, config.App.Name)}
	for _, item := range config.Items {
		state, id := item.BuildState, item.BuildID
		why := ""
		if state == ctlapi.BuildStateQueued && item.BuildError != nil {
			why = ": " + firstLine(*item.BuildError)
		}
		block = append(block, fmt.Sprintf("  %s %s%s", output.Paint(f.Screen.Color, output.StyleOf(string(state)), string(state)), item.Component, why))
		now := string(state) + why
		if told[item.Component] != now && now != string(ctlapi.BuildStateQueued) && !f.Screen.Terminal {
			f.Screen.Print(fmt.Sprintf("%s  build of %s: %s (%s)", f.Now().Format(time.TimeOnly), item.Component, now, id))
		}
		told[item.Component] = now
	}
	f.Screen.Draw(block)
}

func (f Follower) failed(config *ctlapi.Config) error {
	for _, item := range config.Items {
		if item.BuildState == ctlapi.BuildStateFailed || item.BuildState == ctlapi.BuildStateCancelled {
			output.Printf(f.Err, "build of %s %s: %s\n  log: berth logs %s\n", item.Component, item.BuildState,
				firstLine(api.Value(item.BuildError)), item.BuildID)
		}
	}
	return fmt.Errorf("config %d has no release, because a build failed", config.Number)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Line sums a sync up: "config 3 · api built 4 s · web reused → release 3".
// Without builds, what is going to be built is said.
func Line(r *ctlapi.SyncResult, builds map[string]ctlapi.Build) string {
	parts := []string{"config " + api.Number(r.Config)}
	if !r.Created {
		parts[0] += " (unchanged)"
	}
	var reused []string
	for _, item := range r.Items {
		build, known := builds[api.Value(item.BuildID)]
		switch {
		case item.Action == ctlapi.SyncItemActionReuse:
			reused = append(reused, item.Component)
		case !known || build.FinishedAt == nil:
			parts = append(parts, item.Component+" is built")
		default:
			parts = append(parts, fmt.Sprintf("%s built %s", item.Component, follow.Duration(api.BuildTime(build))))
		}
	}
	if len(reused) > 0 {
		parts = append(parts, strings.Join(reused, ", ")+" reused")
	}
	line := strings.Join(parts, " · ")
	if r.Release != nil {
		line += " → release " + api.Number(r.Release)
	}
	return line
}

// Builds looks up the builds that a sync made, by id.
func Builds(ctx context.Context, client *api.Client, result *ctlapi.SyncResult) (map[string]ctlapi.Build, error) {
	builds := map[string]ctlapi.Build{}
	for _, item := range result.Items {
		if id := api.Value(item.BuildID); id != "" && item.Action == ctlapi.SyncItemActionBuild {
			resp, err := client.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{})
			if err != nil {
				return nil, err
			}
			if resp.JSON200 != nil {
				builds[id] = *resp.JSON200
			}
		}
	}
	return builds, nil
}
