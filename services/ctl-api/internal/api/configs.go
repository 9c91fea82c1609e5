package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/apps"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// SyncApp makes the config of an uploaded app folder, or says what it would be.
func (s *Server) SyncApp(ctx context.Context, req apigen.SyncAppRequestObject) (apigen.SyncAppResponseObject, error) {
	sync := apps.SyncRequest{
		App: req.App, BundleDigest: req.Body.BundleDigest, AllowPolicies: req.Body.AllowInvalidPolicies, Sources: map[string]string{}, Mapped: map[string]bool{},
		CLIVersion: req.Body.CliVersion, OldestCLI: s.MinCLIVersion, CreateApp: req.Body.CreateApp, Prune: req.Body.Prune, Confirm: req.Body.Confirm, DryRun: optional.Value(req.Params.DryRun), InputsSet: s.Installs, Actor: auth.PrincipalOf(ctx).AccountName,
	}
	if o := req.Body.Origin; o != nil {
		sync.Origin = apps.Origin{Message: o.Message, Commit: o.Commit, Author: o.Author, Modified: o.Modified}
	}
	for _, src := range req.Body.Sources {
		sync.Sources[src.Component] = src.Digest
		if src.Mapped {
			sync.Mapped[src.Component] = true
		}
	}
	var result apps.SyncResult
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (_ string, err error) {
		if result, err = apps.Sync(ctx, tx, sync); err != nil {
			return "", err
		}
		if sync.DryRun {
			return "", errRollback
		}
		tx.NotifyAfterCommit(model.ChannelBuild, result.App.ID)
		if !result.Created {
			return "sync app " + result.App.Name + ": nothing new", nil
		}
		return fmt.Sprintf("sync app %s: config %d", result.App.Name, result.Config.Number), nil
	})
	if err != nil {
		return nil, err
	}
	if out := syncView(result, sync.DryRun); result.Created && !sync.DryRun {
		return apigen.SyncApp201JSONResponse(out), nil
	} else {
		return apigen.SyncApp200JSONResponse(out), nil
	}
}

// ListConfigs answers the configs of an app, newest first.
func (s *Server) ListConfigs(ctx context.Context, req apigen.ListConfigsRequestObject) (apigen.ListConfigsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	before, err := beforeNumber(req.Params.After)
	if err != nil {
		return nil, err
	}
	var out apigen.ListConfigs200JSONResponse
	err = s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return err
		}
		rows, err := tx.ListConfigs(ctx, ctldb.ListConfigsParams{AppID: app.ID, Before: before, Most: int32(limit + 1)})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(c ctldb.ListConfigsRow) string { return strconv.Itoa(int(c.Number)) })
		configs := convert(rows, func(c ctldb.ListConfigsRow) ctldb.Config {
			return ctldb.Config{ID: c.ID, AppID: c.AppID, Number: c.Number, Digest: c.Digest, BundleDigest: c.BundleDigest, CliVersion: c.CliVersion, CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt}
		})
		standing, err := standingOf(ctx, tx, configs...)
		out.Items = convert(configs, func(c ctldb.Config) apigen.Config { return configView(c, app.Name, standing[c.ID]) })
		return err
	})
	return out, err
}

// GetConfig answers a config with its items, held back until something moves
// when asked to wait.
func (s *Server) GetConfig(ctx context.Context, req apigen.GetConfigRequestObject) (apigen.GetConfigResponseObject, error) {
	var view apigen.Config
	look := func(ctx context.Context) (bool, error) {
		err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
			view, err = oneConfig(ctx, tx, req.Config)
			return err
		})
		return view.Version > optional.Value(req.Params.AfterVersion), err
	}
	err := s.wait(ctx, req.Params.Wait, wakeUps{model.ChannelBuild, func() string { return view.App.ID }}, look)
	return apigen.GetConfig200JSONResponse(view), err
}

// findConfig finds a config by id or as "hello@3".
func findConfig(ctx context.Context, tx *database.Tx, ref string) (ctldb.FindConfigRow, error) {
	find := ctldb.FindConfigParams{ID: ref}
	if app, number, ok := numbered(ref); ok {
		find = ctldb.FindConfigParams{AppName: app, Number: number}
	}
	row, err := tx.FindConfig(ctx, find)
	return row, missing(err, "there is no config %q", ref)
}

func oneConfig(ctx context.Context, tx *database.Tx, ref string) (apigen.Config, error) {
	row, err := findConfig(ctx, tx, ref)
	if err != nil {
		return apigen.Config{}, err
	}
	standing, err := standingOf(ctx, tx, row.Config)
	if err != nil {
		return apigen.Config{}, err
	}
	var folder appconfig.App
	if err := json.Unmarshal(row.Config.Body, &folder); err != nil {
		return apigen.Config{}, fmt.Errorf("decode config %s: %w", row.Config.ID, err)
	}
	view := configView(row.Config, row.AppName, standing[row.Config.ID])
	if view.Items, err = configItems(&folder, standing[row.Config.ID].items); err != nil {
		return apigen.Config{}, err
	}
	view.Inputs = convert(folder.Inputs, inputDefinition)
	view.Actions = convert(folder.Actions, func(a appconfig.Action) string { return a.Name })
	view.Fetched = convert(folder.Fetched, func(f fetch.Fetched) apigen.FetchedFile {
		return apigen.FetchedFile{File: f.At.File, Key: f.At.Key, Address: f.Address, Digest: f.Digest, SizeBytes: f.Size}
	})
	return view, nil
}

// standing is how far a config has come.
type standing struct {
	items   []release.ConfigItem
	release *apigen.NumberRef
}

func standingOf(ctx context.Context, tx *database.Tx, configs ...ctldb.Config) (map[string]standing, error) {
	ids := convert(configs, func(c ctldb.Config) string { return c.ID })
	items, err := release.ConfigItems(ctx, tx.Tx, ids...)
	if err != nil {
		return nil, err
	}
	releases, err := tx.NewestReleaseOfConfigs(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := map[string]standing{}
	for _, it := range items {
		st := all[it.ConfigID]
		st.items = append(st.items, it)
		all[it.ConfigID] = st
	}
	for _, r := range releases {
		st := all[r.ConfigID]
		st.release = &apigen.NumberRef{ID: r.ID, Number: int(r.Number)}
		all[r.ConfigID] = st
	}
	return all, nil
}

// state says what has become of a config, and a version that rises with it.
func (st standing) state() (apigen.ConfigState, int64) {
	state, version := apigen.ConfigStateBuilding, int64(1)
	for _, it := range st.items {
		version += it.BuildVersion
		if it.BuildState == model.BuildFailed || it.BuildState == model.BuildCancelled {
			state = apigen.ConfigStateFailed
		}
	}
	if st.release != nil {
		return apigen.ConfigStateReleased, version + int64(st.release.Number)
	}
	return state, version
}

func configView(c ctldb.Config, app string, st standing) apigen.Config {
	state, version := st.state()
	return apigen.Config{
		ID: c.ID, App: ref(c.AppID, app), Number: int(c.Number), Digest: c.Digest, BundleDigest: c.BundleDigest, CliVersion: c.CliVersion,
		State: state, Version: version, Release: st.release, CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt,
	}
}

// configItems lists the sandbox and the components, dependencies first.
func configItems(folder *appconfig.App, rows []release.ConfigItem) ([]apigen.ConfigItem, error) {
	g, _ := graph.New(folder)
	order := map[string]int{}
	for i, name := range g.Order() {
		order[name] = i
	}
	items, err := convertAll(rows, func(r release.ConfigItem) (apigen.ConfigItem, error) {
		it := apigen.ConfigItem{
			Component: r.Name, Kind: apigen.ConfigItemKind(r.Kind), Type: r.Type, Dependencies: []string{},
			BuildID: r.BuildID, BuildState: apigen.BuildState(r.BuildState), BuildError: r.BuildError,
		}
		source, err := buildSource(r.BuildSource)
		it.Source = &source
		if r.Kind == model.KindComponent {
			it.Dependencies = append(it.Dependencies, g.Needs(r.Name)...)
		}
		return it, err
	})
	slices.SortStableFunc(items, func(a, b apigen.ConfigItem) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(order[a.Component], order[b.Component])) // sandbox before component
	})
	return items, err
}

func inputDefinition(in appconfig.Input) apigen.InputDefinition {
	def := apigen.InputDefinition{
		Name: in.Name, DisplayName: in.DisplayName, Description: in.Description, Group: in.Group,
		Type: apigen.InputDefinitionType(in.Type), Required: in.Required, Sensitive: in.Sensitive,
	}
	if !in.Sensitive {
		def.Default = in.Default
	}
	return def
}

func syncView(r apps.SyncResult, dryRun bool) apigen.SyncResult {
	out := apigen.SyncResult{
		App: ref(r.App.ID, r.App.Name), Created: r.Created, DryRun: dryRun, Removed: append([]string{}, r.Decision.Removed...),
		Items: convert(r.Decision.Items, func(it apps.ItemDecision) apigen.SyncItem {
			return apigen.SyncItem{
				Component: it.Name, Type: it.Type, Action: apigen.SyncItemAction(it.Action), Reason: it.Reason,
				DeployChanged: it.DeployChanged, BuildID: optional.Of(it.BuildID),
			}
		}),
		Warnings: convert(r.Warnings, warningView),
	}
	if dryRun {
		planView(&out, r)
	}
	if r.Config != nil {
		out.Config = &apigen.NumberRef{ID: r.Config.ID, Number: int(r.Config.Number)}
	}
	if r.Release != nil {
		out.Release = &apigen.NumberRef{ID: r.Release.ID, Number: int(r.Release.Number)}
	}
	return out
}

func warningView(d place.Diagnostic) apigen.Warning {
	return apigen.Warning{
		File: optional.Of(d.File), Line: optional.Of(d.Line), Column: optional.Of(d.Column), Code: string(d.Code), Message: d.Message, Remedy: optional.Of(d.Remedy),
	}
}

// planView adds what only a dry run tells.
func planView(out *apigen.SyncResult, r apps.SyncResult) {
	if r.Against != nil {
		out.Against = &apigen.NumberRef{ID: r.Against.ID, Number: int(r.Against.Number)}
	}
	out.Changes = convert(r.Changes, diffObject)
	out.InstallsTotal = &r.InstallsTotal
	out.Installs = convert(r.Installs, func(i apps.InstallPlan) apigen.SyncInstall {
		return apigen.SyncInstall{
			Install: ref(i.ID, i.Name), Release: apiref.Number(optional.Of(i.ReleaseID), &i.ReleaseNumber),
			Inputs: convert(i.Inputs, func(c apps.DefaultChange) apigen.SyncInstallInput {
				return apigen.SyncInstallInput{Name: c.Name, Before: c.Before, After: c.After, Sensitive: c.Sensitive}
			}),
			Components: convert(i.Effects, func(e apps.Effect) apigen.SyncInstallComponent {
				return apigen.SyncInstallComponent{
					Component: e.Name, Kind: apigen.SyncInstallComponentKind(e.Kind), Effect: apigen.SyncInstallComponentEffect(e.Effect), Reason: e.Reason,
				}
			}),
		}
	})
}

// numbered splits "hello@3".
func numbered(ref string) (app string, number int32, ok bool) {
	app, digits, ok := strings.Cut(ref, "@")
	n, err := strconv.ParseInt(digits, 10, 32)
	return app, int32(n), ok && err == nil && n > 0
}
