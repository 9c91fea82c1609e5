package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/alongside"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/configdiff"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/ctl-api/internal/variables"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// SyncRequest asks for a config of an uploaded app folder.
type SyncRequest struct {
	App          string // id or name
	BundleDigest string
	Sources      map[string]string // digest of the archive of each uploaded source, by component
	Mapped       map[string]bool   // those of Sources that stand in for a git repository
	CLIVersion   string
	OldestCLI    string // empty for any
	CreateApp    bool
	Prune        bool
	// AllowPolicies takes policies that their engine refuses as warnings.
	AllowPolicies bool
	Confirm       string // the app's name, when Prune removes something
	DryRun        bool
	InputsSet     InputsSet // asked only in a dry run
	Actor         string
	Origin        Origin
}

// Origin is where a synced folder comes from, as the caller says; nothing checks
// it. Empty where it is not known.
type Origin struct {
	Message  string
	Commit   string
	Author   string // of the commit
	Modified bool   // the folder had changes that are in no commit
}

// SyncResult is what a sync made, found, or (dry run) would make.
type SyncResult struct {
	App      ctldb.App
	Config   *ctldb.ConfigHeadRow // nil in a dry run that would make it
	Release  *ctldb.Release
	Created  bool
	Decision Decision
	Warnings []place.Diagnostic

	// Only in a dry run. Changes are those since Against, the newest config; nil
	// when there is none.
	Against       *ctldb.Config
	Changes       []configdiff.Object
	Installs      []InstallPlan
	InstallsTotal int // also those that are too many to be planned
}

// Sync makes the config of an app folder, its revisions and its queued builds,
// and the release when nothing must be built: all or nothing. The folder that was
// synced last finds its config; an older one makes another config and another
// release, which are the newest then. Two syncs of one app go one after the other.
func Sync(ctx context.Context, tx *database.Tx, req SyncRequest) (SyncResult, error) {
	if err := checkCLI(req.CLIVersion, req.OldestCLI); err != nil {
		return SyncResult{}, err
	}
	folder, warnings, err := readFolder(ctx, tx, req)
	if err != nil {
		return SyncResult{}, err
	}
	// What is stored is made while the database answers.
	body := alongside.Run(func() json.RawMessage { return mustJSON(folder) })
	digest := alongside.Run(func() string { return configDigest(folder, req.Sources) })
	items, err := itemsOf(folder, req.Sources, req.Mapped)
	if err != nil {
		return SyncResult{}, err
	}
	if err := haveSources(ctx, tx, req.Sources); err != nil {
		return SyncResult{}, err
	}
	s := syncing{tx: tx, req: req, folder: folder, items: items, body: body, digest: digest}
	if err := s.findApp(ctx); err != nil {
		return SyncResult{}, err
	}
	missing, err := s.missingVariables(ctx)
	if err != nil {
		return SyncResult{}, err
	}
	s.out.Warnings = slices.Concat(warnings, missing)
	return s.out, s.run(ctx)
}

// haveSources checks that every archive is there before anything refers to it.
func haveSources(ctx context.Context, tx *database.Tx, sources map[string]string) error {
	var digests []string
	for _, digest := range sources {
		digests = append(digests, digest)
	}
	found, err := tx.HaveBlobs(ctx, digests)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, digest := range found {
		have[digest] = true
	}
	for name, digest := range sources {
		if !have[digest] {
			return missingBlob(fmt.Sprintf("the source of %q", name), "/sources", digest)
		}
	}
	return nil
}

// missingVariables warns of variables that the folder reads and the app does not
// have.
func (s *syncing) missingVariables(ctx context.Context) ([]place.Diagnostic, error) {
	rows, err := s.tx.ListAppVariables(ctx, s.out.App.ID)
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	var have []string
	for _, row := range rows {
		have = append(have, row.Name)
	}
	return variables.Reads(check.NamedVariableReads(s.folder)).Missing(s.out.App.Name, have), nil
}

// syncing is one sync under way, inside its transaction.
type syncing struct {
	tx     *database.Tx
	req    SyncRequest
	folder *appconfig.App
	items  []item
	body   func() json.RawMessage // of the folder
	digest func() string          // of the config
	out    SyncResult
}

// appName is what a new app may be called; the contract says the same.
var appName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// findApp finds or makes the app and locks its row.
func (s *syncing) findApp(ctx context.Context) error {
	found, err := s.tx.FindApp(ctx, s.req.App)
	switch {
	case errors.Is(err, fault.ErrNotFound) && !s.req.CreateApp:
		return fault.With(fault.Newf(fault.ErrNotFound, "there is no app %q", s.req.App), fault.Code("app_not_found"),
			fault.Remedy("create it with `berth apps create %s`, or let the sync create it (create_app)", s.req.App))
	case errors.Is(err, fault.ErrNotFound):
		if !appName.MatchString(s.req.App) {
			return fault.Newf(fault.ErrInvalid, "%q is not a valid app name: use lower-case letters, digits and dashes, at most 63 characters", s.req.App)
		}
		if err := s.tx.InsertNewApp(ctx, ctldb.InsertNewAppParams{
			ID: id.New(id.App), Name: s.req.App, Labels: json.RawMessage(`{}`),
			DisplayName: s.folder.Metadata.DisplayName, Description: s.folder.Metadata.Description,
		}); err != nil {
			return err
		}
		found, err = s.tx.FindApp(ctx, s.req.App) // ours, or that of a sync at the same time
	}
	if err != nil {
		return err
	}
	if s.out.App, err = s.tx.LockApp(ctx, found.ID); err == nil && s.out.App.DeletedAt != nil {
		err = fault.Newf(fault.ErrConflict, "app %q has been deleted", s.req.App)
	}
	return err
}

func (s *syncing) run(ctx context.Context) error {
	digest := s.digest()
	newest, err := s.tx.ConfigHead(ctx, ctldb.ConfigHeadParams{AppID: s.out.App.ID})
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	again := err == nil && newest.Digest == digest
	components, before, err := s.history(ctx, newest.ID)
	if err != nil {
		return err
	}
	s.out.Decision = decide(s.items, before, again)
	s.out.Created = !again
	if len(s.out.Decision.Removed) > 0 && !s.req.Prune && !s.req.DryRun && !again {
		return wouldRemove(s.out.Decision.Removed)
	}
	if again {
		s.out.Config = &newest
	}
	if s.req.DryRun {
		if err := s.planChanges(ctx); err != nil {
			return err
		}
		if err := s.planInstalls(ctx); err != nil {
			return err
		}
		return s.findRelease(ctx)
	}
	if s.req.Prune && !again && len(s.out.Decision.Removed) > 0 {
		if err := s.confirmed(); err != nil {
			return err
		}
		if err := s.prune(ctx, components); err != nil {
			return err
		}
	}
	return s.write(ctx, digest)
}

// history reads what was there before, for decide. newest is the app's newest
// config, empty for none.
func (s *syncing) history(ctx context.Context, newest string) ([]ctldb.Component, []history, error) {
	components, err := s.tx.ListComponents(ctx, s.out.App.ID)
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, c := range components {
		ids = append(ids, c.ID)
	}
	builds, err := s.tx.NewestBuilds(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	before := map[string]previous{}
	rows, err := s.tx.ItemsBefore(ctx, newest)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		source, err := sourceFrom(row.BuildSource)
		if err != nil {
			return nil, nil, err
		}
		before[row.ComponentID] = previous{RevisionID: row.RevisionID, BuildDigest: row.BuildDigest, DeployDigest: row.DeployDigest, Source: source}
	}
	built := map[string][]build{}
	for _, b := range builds {
		source, err := sourceFrom(b.Source)
		if err != nil {
			return nil, nil, err
		}
		built[b.ComponentID] = append(built[b.ComponentID],
			build{ID: b.ID, BuildDigest: b.BuildDigest, State: b.State, Source: source, Repository: b.ArtifactRepository, Artifact: b.ArtifactDigest})
	}
	all := make([]history, 0, len(components))
	for _, c := range components {
		h := history{ID: c.ID, Kind: c.Kind, Name: c.Name, Tombstoned: c.TombstonedAt != nil, Builds: built[c.ID]}
		if p, ok := before[c.ID]; ok {
			h.Previous = &p
		}
		all = append(all, h)
	}
	return components, all, nil
}

// confirmed refuses to remove components without the app's name.
func (s *syncing) confirmed() error {
	deed := destruction.Deed{What: "removing components from app " + s.out.App.Name, Name: s.out.App.Name}
	for _, name := range s.out.Decision.Removed {
		deed.Goes = append(deed.Goes, "component "+name)
	}
	return deed.Confirmed(s.req.Confirm)
}

func (s *syncing) prune(ctx context.Context, components []ctldb.Component) error {
	gone := map[string]bool{}
	for _, name := range s.out.Decision.Removed {
		gone[name] = true
	}
	var ids []string
	for _, c := range components {
		if gone[c.Name] && c.Kind == model.KindComponent {
			ids = append(ids, c.ID)
		}
	}
	return s.tx.TombstoneComponents(ctx, ids)
}

// write stores the decision. The newest config, synced again, keeps its items; its
// new builds stand in for those that came to nothing, by their build digest.
func (s *syncing) write(ctx context.Context, digest string) error {
	if s.out.Created {
		config, err := s.tx.InsertConfig(ctx, ctldb.InsertConfigParams{
			ID: id.New(id.Config), AppID: s.out.App.ID, Digest: digest, BundleDigest: s.req.BundleDigest,
			Body: s.body(), CliVersion: s.req.CLIVersion, CreatedBy: s.req.Actor,
			Message: s.req.Origin.Message, GitCommit: s.req.Origin.Commit, GitAuthor: s.req.Origin.Author, GitModified: s.req.Origin.Modified,
		})
		if err != nil {
			return fmt.Errorf("store config: %w", err)
		}
		s.out.Config = (*ctldb.ConfigHeadRow)(&config)
	}
	if err := s.writeItems(ctx, s.out.Decision.Items); err != nil {
		return err
	}
	if err := s.findRelease(ctx); err != nil || s.out.Release != nil || !s.out.Decision.released() {
		return err // the release that it has may be one that somebody promoted
	}
	made, err := s.release(ctx)
	s.out.Release = &made
	return err
}

// release makes the release of a config whose builds are all there.
func (s *syncing) release(ctx context.Context) (ctldb.Release, error) {
	draft := draftOf(*s.out.Config, model.BySync)
	if s.out.Created {
		for _, it := range s.out.Decision.Items {
			draft.Items = append(draft.Items, release.Item{
				ComponentID: it.ComponentID, RevisionID: it.RevisionID, BuildID: it.BuildID, ArtifactRepository: it.Repository, ArtifactDigest: it.Artifact,
			})
		}
	} else { // what stands in it was decided by an earlier sync
		var err error
		if draft.Items, err = lockItems(ctx, s.tx, *s.out.Config, nil); err != nil {
			return ctldb.Release{}, err
		}
	}
	made, _, err := release.Make(ctx, s.tx.Tx, draft)
	return ctldb.Release(made), err
}

// writeItems stores what is new of the items, and what stands in a new config.
func (s *syncing) writeItems(ctx context.Context, items []ItemDecision) error {
	if err := s.writeComponents(ctx, items); err != nil {
		return fmt.Errorf("store components: %w", err)
	}
	if err := s.writeRevisions(ctx, items); err != nil {
		return fmt.Errorf("store revisions: %w", err)
	}
	rows := ctldb.InsertConfigItemsParams{ConfigID: s.out.Config.ID}
	for i := range items {
		it := &items[i]
		if it.Action == ActionBuild {
			var err error
			if it.BuildID, err = queueBuild(ctx, s.tx, ctldb.InsertBuildParams{
				AppID: s.out.App.ID, ComponentID: it.ComponentID, RevisionID: it.RevisionID, BuildDigest: it.BuildDigest,
				Source: mustJSON(it.Source), Reason: it.Reason, RequestedBy: s.req.Actor,
			}); err != nil {
				return fmt.Errorf("queue the build of %s: %w", it.Name, err)
			}
		}
		rows.ComponentIds = append(rows.ComponentIds, it.ComponentID)
		rows.RevisionIds = append(rows.RevisionIds, it.RevisionID)
		rows.BuildIds = append(rows.BuildIds, it.BuildID)
	}
	if !s.out.Created {
		return nil
	}
	return s.tx.InsertConfigItems(ctx, rows)
}

// writeComponents makes the rows of components that are new or come back.
func (s *syncing) writeComponents(ctx context.Context, items []ItemDecision) error {
	rows, at := ctldb.UpsertComponentsParams{AppID: s.out.App.ID}, map[string]*ItemDecision{}
	for i := range items {
		if it := &items[i]; it.ComponentID == "" {
			rows.Ids = append(rows.Ids, id.New(id.Component))
			rows.Kinds = append(rows.Kinds, string(it.Kind))
			rows.Names = append(rows.Names, it.Name)
			at[it.key()] = it
		}
	}
	if len(at) == 0 {
		return nil
	}
	stored, err := s.tx.UpsertComponents(ctx, rows)
	for _, row := range stored {
		at[item{Kind: row.Kind, Name: row.Name}.key()].ComponentID = row.ID
	}
	return err
}

// writeRevisions makes the revisions that the newest config does not have.
func (s *syncing) writeRevisions(ctx context.Context, items []ItemDecision) error {
	rows, at := ctldb.UpsertRevisionsParams{}, map[string]*ItemDecision{}
	for i := range items {
		if it := &items[i]; it.RevisionID == "" {
			rows.Ids = append(rows.Ids, id.New(id.Revision))
			rows.ComponentIds = append(rows.ComponentIds, it.ComponentID)
			rows.Types = append(rows.Types, it.Type)
			rows.BuildDigests = append(rows.BuildDigests, it.BuildDigest)
			rows.DeployDigests = append(rows.DeployDigests, it.DeployDigest)
			rows.Specs = append(rows.Specs, it.Spec)
			rows.Policies = append(rows.Policies, it.Policies)
			at[it.ComponentID] = it
		}
	}
	if len(at) == 0 {
		return nil
	}
	stored, err := s.tx.UpsertRevisions(ctx, rows)
	for _, row := range stored {
		at[row.ComponentID].RevisionID = row.ID
	}
	return err
}

// findRelease fills in the release that the config has already.
func (s *syncing) findRelease(ctx context.Context) error {
	if s.out.Config == nil {
		return nil
	}
	rows, err := s.tx.NewestReleaseOfConfigs(ctx, []string{s.out.Config.ID})
	for _, row := range rows {
		s.out.Release = &ctldb.Release{ID: row.ID, Number: row.Number}
	}
	return err
}

// queueBuild stores a queued build and wakes builder.
func queueBuild(ctx context.Context, tx *database.Tx, build ctldb.InsertBuildParams) (string, error) {
	build.ID = id.New(id.Build)
	build.Trace = mustJSON(telemetry.Inject(ctx))
	if _, err := tx.InsertBuild(ctx, build); err != nil {
		return "", err
	}
	return build.ID, tx.WakeBuild(ctx, build.ID)
}

// sourceFrom reads what a row of ours says of a build's source; empty for a row
// without a build.
func sourceFrom(raw json.RawMessage) (Source, error) {
	var src Source
	if len(raw) == 0 {
		return src, nil
	}
	if err := json.Unmarshal(raw, &src); err != nil {
		return src, fmt.Errorf("read source of a build: %w", err)
	}
	return src, nil
}

func wouldRemove(names []string) error {
	return fault.With(fault.Newf(fault.ErrConflict, "the folder no longer has what the app has: %s", strings.Join(names, ", ")),
		fault.Code("would_remove"), fault.Remedy("put them back, or remove them from the app with `berth sync --prune`"))
}
