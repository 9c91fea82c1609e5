package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// App shows apps.
func App(now time.Time) output.View[ctlapi.App] {
	return output.View[ctlapi.App]{
		Name: func(a ctlapi.App) string { return a.Name },
		None: "no apps yet: run berth sync in an app folder to create one",
		Columns: []output.Column[ctlapi.App]{
			{Head: "NAME", Shrinks: true, Cell: func(a ctlapi.App) string { return a.Name }},
			{Head: "DISPLAY NAME", Shrinks: true, Cell: func(a ctlapi.App) string { return a.DisplayName }},
			{Head: "CONFIG", Cell: func(a ctlapi.App) string { return api.Number(a.Config) }},
			{Head: "RELEASE", Cell: func(a ctlapi.App) string { return api.Number(a.Release) }},
			{Head: "AGE", Cell: func(a ctlapi.App) string { return age(now, a.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(a ctlapi.App) string { return a.ID }},
			{Head: "DESCRIPTION", Wide: true, Cell: func(a ctlapi.App) string { return a.Description }},
		},
	}
}

// Variable shows variables of an app; lists have no values.
func Variable(now time.Time, withValue bool) output.View[ctlapi.AppVariable] {
	view := output.View[ctlapi.AppVariable]{
		Name: func(v ctlapi.AppVariable) string { return v.Name },
		None: "the app has no variables: create one with berth apps variables set",
		Columns: []output.Column[ctlapi.AppVariable]{
			{Head: "NAME", Shrinks: true, Cell: func(v ctlapi.AppVariable) string { return v.Name }},
			{Head: "SENSITIVE", Cell: func(v ctlapi.AppVariable) string {
				if v.Sensitive {
					return "yes"
				}
				return "no"
			}},
			{Head: "READ BY", Shrinks: true, Cell: Readers},
			{Head: "AGE", Cell: func(v ctlapi.AppVariable) string { return age(now, v.UpdatedAt) }},
			{Head: "BY", Shrinks: true, Cell: func(v ctlapi.AppVariable) string { return v.UpdatedBy }},
			{Head: "VERSION", Wide: true, Cell: func(v ctlapi.AppVariable) string { return fmt.Sprint(v.Version) }},
		},
	}
	if withValue {
		view.Columns = append(view.Columns[:1:1], append([]output.Column[ctlapi.AppVariable]{{Head: "VALUE", Shrinks: true, Cell: func(v ctlapi.AppVariable) string {
			if v.Sensitive {
				return "(sensitive)"
			}
			return api.Value(v.Value)
		}}}, view.Columns[1:]...)...)
	}
	return view
}

// Config shows the configs of an app.
func Config(now time.Time) output.View[ctlapi.Config] {
	return output.View[ctlapi.Config]{
		Name: func(x ctlapi.Config) string { return x.ID },
		None: "no configs yet: create one with berth sync",
		Columns: []output.Column[ctlapi.Config]{
			{Head: "APP", Shrinks: true, Cell: func(x ctlapi.Config) string { return x.App.Name }},
			{Head: "NUMBER", Cell: func(x ctlapi.Config) string { return api.Number(&ctlapi.NumberRef{Number: x.Number}) }},
			{Head: "STATE", Cell: func(x ctlapi.Config) string { return string(x.State) }},
			{Head: "RELEASE", Cell: func(x ctlapi.Config) string { return api.Number(x.Release) }},
			{Head: "AGE", Cell: func(x ctlapi.Config) string { return age(now, x.CreatedAt) }},
			{Head: "BY", Shrinks: true, Cell: func(x ctlapi.Config) string { return x.CreatedBy }},
			{Head: "ID", Wide: true, Cell: func(x ctlapi.Config) string { return x.ID }},
			{Head: "DIGEST", Wide: true, Cell: func(x ctlapi.Config) string { return output.ShortDigest(x.Digest) }},
		},
	}
}

// ConfigItem shows a config's components.
func ConfigItem() output.View[ctlapi.ConfigItem] {
	return output.View[ctlapi.ConfigItem]{
		Name: func(i ctlapi.ConfigItem) string { return i.Component },
		Columns: []output.Column[ctlapi.ConfigItem]{
			{Head: "COMPONENT", Shrinks: true, Cell: func(i ctlapi.ConfigItem) string { return i.Component }},
			{Head: "TYPE", Shrinks: true, Cell: func(i ctlapi.ConfigItem) string { return i.Type }},
			{Head: "NEEDS", Shrinks: true, Cell: func(i ctlapi.ConfigItem) string { return strings.Join(i.Dependencies, ", ") }},
			{Head: "BUILD", Shrinks: true, Cell: func(i ctlapi.ConfigItem) string { return string(i.BuildState) }},
			{Head: "BUILD ID", Shrinks: true, Least: shortID, Cell: func(i ctlapi.ConfigItem) string { return i.BuildID }},
			{Head: "SOURCE", Wide: true, Cell: func(i ctlapi.ConfigItem) string { return sourceText(api.Value(i.Source)) }},
		},
	}
}

// Build shows builds.
func Build(now time.Time) output.View[ctlapi.Build] {
	return output.View[ctlapi.Build]{
		Name: func(b ctlapi.Build) string { return b.ID },
		None: "no builds",
		Columns: []output.Column[ctlapi.Build]{
			{Head: "ID", Shrinks: true, Least: shortID, Cell: func(b ctlapi.Build) string { return b.ID }},
			{Head: "APP", Shrinks: true, Cell: func(b ctlapi.Build) string { return b.App.Name }},
			{Head: "COMPONENT", Shrinks: true, Cell: func(b ctlapi.Build) string { return b.Component.Name }},
			{Head: "STATE", Cell: func(b ctlapi.Build) string { return string(b.State) }},
			{Head: "REASON", Shrinks: true, Cell: func(b ctlapi.Build) string { return b.Reason }},
			{Head: "TOOK", Cell: func(b ctlapi.Build) string {
				if b.FinishedAt == nil {
					return ""
				}
				return follow.Duration(api.BuildTime(b))
			}},
			{Head: "AGE", Cell: func(b ctlapi.Build) string { return age(now, b.CreatedAt) }},
			{Head: "WAITS FOR", Wide: true, Cell: func(b ctlapi.Build) string { return api.Value(b.Wait).Reason }},
			{Head: "ARTIFACT", Wide: true, Cell: func(b ctlapi.Build) string { return output.ShortDigest(api.Value(b.Artifact).Digest) }},
			{Head: "ATTESTED", Wide: true, Cell: attested},
			{Head: "POLICIES", Wide: true, Cell: buildPolicies},
			{Head: "ERROR", Wide: true, Cell: func(b ctlapi.Build) string { return api.Value(b.Error) }},
		},
	}
}

// attested says what hangs on a build's artifact.
func attested(b ctlapi.Build) string {
	names := map[string]string{attest.SLSA: "provenance", attest.SPDX: "sbom"}
	var all []string
	for _, a := range b.Attestations {
		if name := cmp.Or(names[a.PredicateType], a.PredicateType); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}

// buildPolicies says what policies say against an image, and of how many nothing.
func buildPolicies(b ctlapi.Build) string {
	var against []string
	passed := 0
	for _, p := range b.Policies {
		if p.Answer == ctlapi.PolicyAnswerAllow {
			passed++
			continue
		}
		text := p.Policy + " " + string(p.Answer)
		if len(p.Findings) > 0 {
			text += ": " + cmp.Or(api.Value(p.Findings[0].Message), string(p.Findings[0].Result))
		}
		against = append(against, text)
	}
	if passed > 0 {
		against = append(against, fmt.Sprintf("%d passed", passed))
	}
	return strings.Join(against, "; ")
}

// signed says whether the vendor stands by a release.
func signed(r ctlapi.Release) string {
	switch {
	case r.Revoked:
		return "revoked"
	case r.Signed:
		return "yes"
	}
	return "no"
}

// Release shows the releases of an app.
func Release(now time.Time) output.View[ctlapi.Release] {
	return output.View[ctlapi.Release]{
		Name: func(r ctlapi.Release) string { return r.ID },
		None: "no releases yet: create one with berth sync --wait",
		Columns: []output.Column[ctlapi.Release]{
			{Head: "APP", Shrinks: true, Cell: func(r ctlapi.Release) string { return r.App.Name }},
			{Head: "NUMBER", Cell: func(r ctlapi.Release) string { return api.Number(&ctlapi.NumberRef{Number: r.Number}) }},
			{Head: "CONFIG", Cell: func(r ctlapi.Release) string { return api.Number(&r.Config) }},
			{Head: "MADE BY", Shrinks: true, Cell: func(r ctlapi.Release) string { return string(r.MadeBy) }},
			{Head: "SIGNED", Cell: signed},
			{Head: "AGE", Cell: func(r ctlapi.Release) string { return age(now, r.CreatedAt) }},
			{Head: "COMMIT", Cell: func(r ctlapi.Release) string { return Commit(r.Origin) }},
			{Head: "MESSAGE", Shrinks: true, Cell: func(r ctlapi.Release) string { return firstWords(api.Value(r.Origin).Message) }},
			{Head: "AUTHOR", Wide: true, Cell: func(r ctlapi.Release) string { return api.Value(r.Origin).Author }},
			{Head: "SYNCED BY", Wide: true, Cell: func(r ctlapi.Release) string { return r.SyncedBy }},
			{Head: "ID", Wide: true, Cell: func(r ctlapi.Release) string { return r.ID }},
			{Head: "DIGEST", Wide: true, Cell: func(r ctlapi.Release) string { return output.ShortDigest(r.Digest) }},
		},
	}
}

// Commit is the short name of the commit that a release comes from, with a + when
// the folder had changes that are in none; "" when it is not known.
func Commit(o *ctlapi.Origin) string {
	const enough = 8 // letters, as git shows
	commit := api.Value(o).Commit
	if len(commit) > enough {
		commit = commit[:enough]
	}
	if api.Value(o).Modified {
		commit += "+"
	}
	return commit
}

// firstWords is as much of a message as a row has room for.
func firstWords(message string) string {
	const room = 40 // characters
	message, _, _ = strings.Cut(message, "\n")
	if runes := []rune(message); len(runes) > room {
		return string(runes[:room-1]) + "…"
	}
	return message
}

// ReleaseItem shows a release's components and the build of each.
func ReleaseItem() output.View[ctlapi.ReleaseItem] {
	return output.View[ctlapi.ReleaseItem]{
		Name: func(i ctlapi.ReleaseItem) string { return i.Component },
		Columns: []output.Column[ctlapi.ReleaseItem]{
			{Head: "COMPONENT", Shrinks: true, Cell: func(i ctlapi.ReleaseItem) string { return i.Component }},
			{Head: "TYPE", Shrinks: true, Cell: func(i ctlapi.ReleaseItem) string { return i.Type }},
			{Head: "ARTIFACT", Shrinks: true, Cell: func(i ctlapi.ReleaseItem) string { return output.ShortDigest(i.Artifact.Digest) }},
			{Head: "BUILD", Shrinks: true, Least: shortID, Cell: func(i ctlapi.ReleaseItem) string { return i.BuildID }},
		},
	}
}

// ManifestItem shows what a release brings to an install.
func ManifestItem() output.View[ctlapi.ManifestItem] {
	return output.View[ctlapi.ManifestItem]{
		Name: func(i ctlapi.ManifestItem) string { return i.Digest },
		None: "the release has nothing for installs",
		Columns: []output.Column[ctlapi.ManifestItem]{
			{Head: "BRINGS", Shrinks: true, Cell: func(i ctlapi.ManifestItem) string { return string(i.Kind) }},
			{Head: "NAME", Shrinks: true, Cell: func(i ctlapi.ManifestItem) string { return i.Name }},
			{Head: "DIGEST", Shrinks: true, Cell: func(i ctlapi.ManifestItem) string { return i.Digest }},
		},
	}
}

// Readers are the parts of the newest config that read a variable.
func Readers(v ctlapi.AppVariable) string {
	var names []string
	for _, r := range v.ReadBy {
		name := r.Name
		if r.Kind == ctlapi.AppVariableReaderKindAction {
			name = "action " + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// sourceText says where a component is built from: "git acme/app//infra main",
// "local sha256:…", and what that stands in for.
func sourceText(s ctlapi.BuildSource) string {
	repo := strings.TrimSpace(api.Value(s.Repo) + " " + api.Value(s.Ref))
	if dir := api.Value(s.Directory); dir != "" && dir != "." {
		repo = strings.TrimSpace(api.Value(s.Repo) + "//" + dir + " " + api.Value(s.Ref))
	}
	switch {
	case api.Value(s.Digest) != "" && repo != "":
		return "local " + output.ShortDigest(*s.Digest) + " for " + repo
	case api.Value(s.Digest) != "":
		return "local " + output.ShortDigest(*s.Digest)
	}
	return strings.TrimSpace(string(s.Kind) + " " + repo)
}
