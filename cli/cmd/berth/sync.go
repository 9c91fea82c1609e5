package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// longPoll is how long one question may be held by the service.
const longPoll = "30s"

// syncing are the flags of sync.
type syncing struct {
	app           string
	wait, plan    bool
	noCreate      bool
	prune, strict bool
	sourceMap     []string
	sourceMapFile string
	watching      watching
}

func (c *cli) syncCommand() *cobra.Command {
	var s syncing
	cmd := &cobra.Command{
		Use:   "sync [FOLDER]",
		Short: "Make a config, builds and a release of an app folder",
		Long: `Checks the app folder, uploads what the control plane does not have, and makes a
config of it. Components that changed are built; when all builds are done there is
a new release. The same folder again changes nothing.

What the folder takes from http(s) addresses and git repositories is fetched here,
recorded by its digest, and part of the config: other contents make another config.

--plan says what would change: the config, what is built, the installs, and what the
folder no longer has. With --source-map a git repository that the config names is taken
from a directory here, and the config holds what stands there.`,
		Example: "  berth sync --wait\n  berth sync ./app --plan\n  berth sync --source-map acme/sandboxes=../sandboxes\n" +
			"  berth sync --source-map https://git.example.com/acme/app//infra=./infra",
		Args: exactly("[FOLDER]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := "."
			if len(args) > 0 {
				folder = args[0]
			}
			return c.sync(cmd.Context(), folder, s)
		},
	}
	cmd.Flags().StringVar(&s.app, "app", "", "name of the app (default: the folder's name)")
	cmd.Flags().BoolVarP(&s.wait, "wait", "w", false, "follow the builds until the release is made")
	cmd.Flags().BoolVar(&s.wait, "watch", false, "the same as --wait")
	cmd.Flags().BoolVar(&s.plan, "plan", false, "only say what would happen; exit code 2 when something would")
	cmd.Flags().BoolVar(&s.noCreate, "no-create", false, "fail when there is no such app instead of making it")
	cmd.Flags().BoolVar(&s.prune, "prune", false, "take components that are no longer in the folder out of the app")
	cmd.Flags().BoolVar(&s.strict, "strict", false, "take warnings as errors")
	cmd.Flags().StringArrayVar(&s.sourceMap, "source-map", nil, "REPO[//DIR]=PATH: take a git repository from a directory; may be repeated")
	cmd.Flags().StringVar(&s.sourceMapFile, "source-map-file", "", "a file of such entries, one a line, with paths relative to it")
	s.watching.timeoutFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("plan", "wait")
	return cmd
}

func (c *cli) sync(ctx context.Context, folder string, s syncing) error {
	app, uploads, ask, err := c.readFolder(ctx, folder, s)
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	ctx, cancel := s.watching.within(ctx)
	defer cancel()
	if err := upload(ctx, client, uploads); err != nil {
		return err
	}
	resp, err := client.SyncAppWithResponse(ctx, app, &ctlapi.SyncAppParams{DryRun: &s.plan}, ask.request)
	if err != nil {
		return err
	}
	result, err := api.Body(resp.JSON201, resp.JSON200)
	if err != nil {
		return err
	}
	c.tellWarnings(result.Warnings, ask.shown)
	if s.plan {
		return c.showSyncPlan(result, s.prune)
	}
	if !s.wait {
		if c.forPrograms() {
			return printOne(c, *result, syncView())
		}
		_, err := output.Println(c.out, syncLine(result, nil))
		return err
	}
	return whileFollowing(c.awaitRelease(ctx, client, result), "berth sync "+folder+" --wait")
}

func errorsIn(diagnostics []place.Diagnostic) string {
	n := 0
	for _, d := range diagnostics {
		if d.Severity == place.Error {
			n++
		}
	}
	if n == 1 {
		return "1 error"
	}
	return fmt.Sprintf("%d errors", n)
}

// upload sends those archives that the control plane does not have.
func upload(ctx context.Context, client *api.Client, archives []archive) error {
	ask := ctlapi.BlobDigests{}
	have := map[string][]byte{}
	for _, a := range archives {
		if _, ok := have[a.digest]; !ok {
			ask.Digests = append(ask.Digests, a.digest)
			have[a.digest] = a.bytes
		}
	}
	resp, err := client.FindMissingBlobsWithResponse(ctx, &ctlapi.FindMissingBlobsParams{}, ask)
	if err != nil {
		return err
	}
	body, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	for _, digest := range body.Missing {
		if _, err := client.PutBlobWithBodyWithResponse(ctx, digest, "application/octet-stream", io.Reader(bytes.NewReader(have[digest]))); err != nil {
			return err
		}
	}
	return nil
}

func syncView() output.View[ctlapi.SyncResult] {
	return output.View[ctlapi.SyncResult]{Name: func(r ctlapi.SyncResult) string { return value(r.Config).ID }}
}

// syncLine sums a sync up: "config 3 · api built 4 s · web reused → release 3".
// Without builds, what is going to be built is said.
func syncLine(r *ctlapi.SyncResult, builds map[string]ctlapi.Build) string {
	parts := []string{"config " + number(r.Config)}
	if !r.Created {
		parts[0] += " (unchanged)"
	}
	var reused []string
	for _, item := range r.Items {
		build, known := builds[value(item.BuildID)]
		switch {
		case item.Action == ctlapi.SyncItemActionReuse:
			reused = append(reused, item.Component)
		case !known || build.FinishedAt == nil:
			parts = append(parts, item.Component+" is built")
		default:
			parts = append(parts, fmt.Sprintf("%s built %s", item.Component, follow.Duration(buildTime(build))))
		}
	}
	if len(reused) > 0 {
		parts = append(parts, strings.Join(reused, ", ")+" reused")
	}
	line := strings.Join(parts, " · ")
	if r.Release != nil {
		line += " → release " + number(r.Release)
	}
	return line
}

func buildTime(b ctlapi.Build) time.Duration {
	from := b.CreatedAt
	if b.StartedAt != nil {
		from = *b.StartedAt
	}
	return value(b.FinishedAt).Sub(from)
}

// awaitRelease follows the builds of a config.
func (c *cli) awaitRelease(ctx context.Context, client *api.Client, result *ctlapi.SyncResult) error {
	if result.Release != nil {
		return c.released(ctx, client, result) // nothing had to be built
	}
	screen := c.screen()
	told := map[string]ctlapi.BuildState{}
	var after int64
	for {
		params := &ctlapi.GetConfigParams{AfterVersion: &after}
		if after > 0 {
			params.Wait = optional(longPoll)
		}
		resp, err := client.GetConfigWithResponse(ctx, value(result.Config).ID, params)
		if err != nil {
			return err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		after = max(config.Version, 1)
		c.tellBuilds(screen, config, told)
		switch config.State {
		case ctlapi.ConfigStateReleased:
			screen.Clear()
			result.Release = config.Release
			return c.released(ctx, client, result)
		case ctlapi.ConfigStateFailed:
			screen.Clear()
			return failedBuilds(c, config)
		}
	}
}

// tellBuilds shows the builds: all of them on a terminal, what moved elsewhere.
func (c *cli) tellBuilds(screen *follow.Screen, config *ctlapi.Config, told map[string]ctlapi.BuildState) {
	block := []string{fmt.Sprintf("config %d of %s", config.Number, config.App.Name)}
	for _, item := range config.Items {
		state, id := item.BuildState, item.BuildID
		block = append(block, fmt.Sprintf("  %s %s", output.Paint(screen.Color, output.StyleOf(string(state)), string(state)), item.Component))
		if told[item.Component] != state && state != ctlapi.BuildStateQueued && !screen.Terminal {
			screen.Print(fmt.Sprintf("%s  build of %s: %s (%s)", c.now().Format(time.TimeOnly), item.Component, state, id))
		}
		told[item.Component] = state
	}
	screen.Draw(block)
}

func (c *cli) released(ctx context.Context, client *api.Client, result *ctlapi.SyncResult) error {
	if c.forPrograms() {
		return printOne(c, *result, syncView())
	}
	builds := map[string]ctlapi.Build{}
	for _, item := range result.Items {
		if id := value(item.BuildID); id != "" && item.Action == ctlapi.SyncItemActionBuild {
			resp, err := client.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{})
			if err != nil {
				return err
			}
			if resp.JSON200 != nil {
				builds[id] = *resp.JSON200
			}
		}
	}
	_, err := output.Println(c.out, syncLine(result, builds))
	return err
}

func failedBuilds(c *cli, config *ctlapi.Config) error {
	for _, item := range config.Items {
		if item.BuildState == ctlapi.BuildStateFailed || item.BuildState == ctlapi.BuildStateCancelled {
			output.Printf(c.err, "build of %s %s: %s\n  log: berth logs %s\n", item.Component, item.BuildState,
				firstLine(value(item.BuildError)), item.BuildID)
		}
	}
	return fmt.Errorf("config %d has no release: a build did not succeed", config.Number)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
