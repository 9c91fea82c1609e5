package apps

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// SandboxName is what the sandbox is called among the components.
const SandboxName = "sandbox"

// Source is where a build takes its files from, as stored in builds.source.
type Source struct {
	Kind      string `json:"kind"`             // local, git, image, chart or oci
	Digest    string `json:"digest,omitempty"` // local: the blob
	Repo      string `json:"repo,omitempty"`   // local: the git repository that the blob stands in for
	Ref       string `json:"ref,omitempty"`
	Range     bool   `json:"range,omitempty"` // image: ref is a range of versions
	Connected bool   `json:"connected,omitempty"`
	Directory string `json:"directory,omitempty"`

	ECR *appconfig.SourceECR `json:"aws_ecr,omitempty"` // image: in a registry of AWS
}

// item is one thing of a config that is built and released: the sandbox, a
// component, or a directory of scripts.
type item struct {
	Kind         model.ResourceKind
	Name         string
	Type         string
	BuildDigest  string
	DeployDigest string
	Source       Source
	Spec         json.RawMessage // appconfig.Sandbox or appconfig.Component
	Policies     json.RawMessage // []policy.Rules that its build is held against; null for none
}

// key tells the sandbox from a component called sandbox.
func (i item) key() string { return string(i.Kind) + "/" + i.Name }

// itemsOf lists what a config consists of, the sandbox first and the scripts last. sources holds the
// digest of the archive of each uploaded source, by name of its component;
// mapped says which of these stand in for a git repository.
func itemsOf(app *appconfig.App, sources map[string]string, mapped map[string]bool) ([]item, error) {
	var items []item
	var faults []fault.FieldError
	local := map[string]bool{}
	add := func(it item, src appconfig.Source, hasSource bool, digest func(string) string) {
		if !hasSource {
			return // Check has refused a folder without it
		}
		it.Source = Source{Kind: string(src.Kind), Repo: src.Repo, Ref: src.Ref, Range: src.Range, Connected: src.Connected, Directory: src.Directory, ECR: src.ECR}
		content := ""
		switch {
		case mapped[it.Name] && src.Mappable():
			local[it.Name] = true
			content = sources[it.Name]
			it.Source.Kind, it.Source.Digest = string(appconfig.SourceLocal), content
		case mapped[it.Name]:
			local[it.Name] = true
			faults = append(faults, fault.FieldError{Pointer: "/sources", Code: "source_not_git", Detail: fmt.Sprintf("the source of %q is in no repository, so nothing can stand in for it", it.Name)})
			return
		case src.Uploaded():
			local[it.Name] = true
			if content = sources[it.Name]; content == "" {
				faults = append(faults, fault.FieldError{Pointer: "/sources", Code: "source_missing", Detail: fmt.Sprintf("the source of %q is uploaded, but its archive is not named here", it.Name)})
				return
			}
			it.Source = Source{Kind: string(appconfig.SourceLocal), Digest: content}
		}
		it.BuildDigest = digest(content)
		items = append(items, it)
	}
	if s := app.Sandbox; s != nil {
		src, ok := s.Source()
		add(item{Kind: model.KindSandbox, Name: SandboxName, Type: string(sandboxKind(s)), DeployDigest: s.DeployDigest(), Spec: mustJSON(s)}, src, ok, s.BuildDigest)
	}
	for i := range app.Components {
		c := &app.Components[i]
		src, ok := c.Source()
		rules := orders.BuildPolicies(app, c)
		it := item{Kind: model.KindComponent, Name: c.Name, Type: string(c.Type), DeployDigest: c.DeployDigest(), Spec: mustJSON(c), Policies: mustJSON(rules)}
		add(it, src, ok, func(content string) string { return heldAgainst(c.BuildDigest(content), rules) })
	}
	for _, src := range appconfig.ScriptSources(app) {
		it := item{Kind: model.KindScripts, Name: src.Name, Type: string(jobspec.KindScripts), Spec: scriptsSpec(app, src.Name)}
		it.DeployDigest = scriptsDigest("") // a runner accepts them with the scripts that name them
		add(it, src, true, scriptsDigest)
	}
	for name := range sources {
		if !local[name] {
			faults = append(faults, fault.FieldError{Pointer: "/sources", Code: "source_unknown", Detail: fmt.Sprintf("the config has no local source of %q", name)})
		}
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b fault.FieldError) int { return compareText(a.Detail, b.Detail) })
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the archives do not match the config"), fault.Code("sources_invalid"), fault.Fields(faults...),
			fault.Remedy("sync with the `berth` from this control plane's release"))
	}
	return items, nil
}

// scriptsDigest is the build digest of scripts. A build keeps the directory as it is,
// so those of one commit and directory share a build, whatever they are called.
func scriptsDigest(content string) string {
	return capsule.DigestBytes(mustJSON([]any{"berth/scripts/v1", content}))
}

// scriptsSpec says which file of the app folder names the scripts first.
func scriptsSpec(app *appconfig.App, name string) json.RawMessage {
	for i := range app.Actions {
		a := &app.Actions[i]
		for j := range a.Steps {
			if src, ok := a.Steps[j].Source(); ok && src.Name == name {
				return mustJSON(map[string]any{"at": a.At})
			}
		}
	}
	return json.RawMessage(`{}`)
}

// configDigest identifies a config with its local sources: the same digest, the
// same config. Configs of before had no items for scripts.
func configDigest(app *appconfig.App, sources map[string]string) string {
	form := "berth/config/v1"
	if len(appconfig.ScriptSources(app)) > 0 {
		form = "berth/config/v2"
	}
	return capsule.DigestBytes(mustJSON([]any{form, app.Digest(), sources})) // maps are written in the order of their keys
}

// commitRef is a ref that cannot move.
var commitRef = regexp.MustCompile(`^[0-9a-f]{40}$`)

// moves says whether the content behind the source may change while its
// description stays the same: a branch, a tag or a chart.
func (s Source) moves() bool {
	switch appconfig.SourceKind(s.Kind) {
	case appconfig.SourceImage, appconfig.SourceChart:
		return true
	case appconfig.SourceGit:
		return !commitRef.MatchString(s.Ref)
	case appconfig.SourceOCI:
		return !strings.HasPrefix(s.Ref, "sha256:")
	}
	return false
}

// mustJSON encodes our own plain structs, which always can be.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func sandboxKind(s *appconfig.Sandbox) jobspec.Kind {
	if s.Type == appconfig.SandboxTypePulumi {
		return jobspec.KindPulumi
	}
	return jobspec.KindTerraformModule
}

// heldAgainst is the build digest of what is built under rules: other rules want another
// build, which is judged again.
func heldAgainst(buildDigest string, rules []policy.Rules) string {
	if len(rules) == 0 {
		return buildDigest
	}
	return capsule.DigestBytes(mustJSON([]any{"component.build.policies", buildDigest, policy.Identity(rules)}))
}
