package appconfig

import (
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/folder"
)

// Repo is a public_repo or connected_repo table.
type Repo struct {
	// "owner/name" or a URL.
	Repo string `toml:"repo" json:"repo" rule:"required"`
	// A directory of the repository; its root by default.
	Directory string `toml:"directory" json:"directory,omitempty"`
	// A branch, a tag or a commit; the repository's default branch by default.
	Branch string `toml:"branch" json:"branch,omitempty"`
}

// SourceKind says how a source is fetched.
type SourceKind string

const (
	SourceLocal SourceKind = "local" // a directory of the app folder
	SourceGit   SourceKind = "git"   // a directory of a git repository
	SourceText  SourceKind = "text"  // a file whose text the config holds
	SourceImage SourceKind = "image" // an image of a registry
	SourceChart SourceKind = "chart" // a chart of a chart repository
	SourceOCI   SourceKind = "oci"   // a directory that was packed as an artifact of a registry
)

// Kinds of blocks whose values differ between installs. The first two and the
// scripts have a source to build.
const (
	BlockSandbox   = "sandbox"
	BlockComponent = "component"
	BlockStack     = "stack"
	BlockRole      = "role" // of permissions and of break glass
	BlockAction    = "action"
	BlockRunbook   = "runbook"
	BlockMetadata  = "metadata" // the README and the labels of installs
	BlockRunner    = "runner"
	BlockPolicy    = "policy"
	// BlockScripts is a directory of a repository that steps of actions run in.
	BlockScripts = "scripts"
	// BlockOperationRoles is the matrix of operation_roles.toml.
	BlockOperationRoles = "operation_roles"
)

// Source is where one buildable's files come from.
type Source struct {
	Block     string     `json:"block"`          // "sandbox", "component" or "scripts"
	Name      string     `json:"name,omitempty"` // the component's name; of scripts the repository, directory and ref
	Kind      SourceKind `json:"kind"`
	Repo      string     `json:"repo,omitempty"`      // git: "owner/name" or a URL, as written; image, oci: "host/path"; chart: the repository's address
	Ref       string     `json:"ref,omitempty"`       // git: a branch, a tag or a commit, "" is the default branch; image: a tag; oci: a tag or a digest; chart: a version or a range, "" is the newest
	Range     bool       `json:"range,omitempty"`     // image: Ref is a range of versions
	Connected bool       `json:"connected,omitempty"` // git: through the org's own connection
	Directory string     `json:"directory"`           // cleaned, slash-separated; "." is the root; chart: the chart's name
	File      string     `json:"file,omitempty"`      // text: what the file is called
	Text      string     `json:"-"`                   // text: what is in it

	ECR *SourceECR `json:"aws_ecr,omitempty"` // image: in a registry of AWS
}

// SourceECR is how an image in a registry of AWS is read; both may be "".
type SourceECR struct {
	Region     string `json:"region,omitempty"`
	IAMRoleARN string `json:"iam_role_arn,omitempty"`
}

// manifestFile is what a manifest is called in its artifact.
const manifestFile = "manifest.yaml"

// Uploaded tells whether the source travels with a sync, as what Archive packs.
func (s Source) Uploaded() bool { return s.Kind == SourceLocal || s.Kind == SourceText }

// Mappable tells whether a directory of the machine that syncs can stand in for
// the source.
func (s Source) Mappable() bool { return s.Kind == SourceGit || s.Kind == SourceChart }

// Sources lists the source of every buildable: the sandbox, then the components
// in order of their names, then the scripts. Buildables without a valid source are
// left out.
func Sources(app *App) []Source {
	var all []Source
	if app.Sandbox != nil {
		if src, ok := app.Sandbox.Source(); ok {
			all = append(all, src)
		}
	}
	for i := range app.Components {
		if src, ok := app.Components[i].Source(); ok {
			all = append(all, src)
		}
	}
	return append(all, ScriptSources(app)...)
}

// ScriptSources lists the directories of repositories that steps of actions run
// in, each once, in the order of the actions.
func ScriptSources(app *App) []Source {
	var all []Source
	for i := range app.Actions {
		for j := range app.Actions[i].Steps {
			src, ok := app.Actions[i].Steps[j].Source()
			if ok && !slices.ContainsFunc(all, func(other Source) bool { return other.Name == src.Name }) {
				all = append(all, src)
			}
		}
	}
	return all
}

// Source is the directory that the step runs in, false for one without a
// repository. Steps with the same directory have sources of the same name.
func (s *Step) Source() (Source, bool) {
	src, ok := sourceOf(s.PublicRepo, s.ConnectedRepo, nil)
	if ok {
		src.Block, src.Name = BlockScripts, scriptsName(src)
	}
	return src, ok
}

// scriptsName is what scripts are called, "owner/name//directory@ref": no component
// can be called that.
func scriptsName(src Source) string {
	name := src.Repo
	if src.Directory != "." {
		name += "//" + src.Directory
	}
	if src.Ref != "" {
		name += "@" + src.Ref
	}
	if !strings.Contains(name, "/") {
		name = "./" + name
	}
	return name
}

func sourceOf(public, connected *Repo, ext *BlockExtension) (Source, bool) {
	switch {
	case ext != nil && ext.LocalSource != "":
		return Source{Kind: SourceLocal, Directory: folder.Clean(ext.LocalSource)}, true
	case ext != nil && ext.OCISource != "":
		repo, ref, ok := splitOCI(ext.OCISource)
		return Source{Kind: SourceOCI, Repo: repo, Ref: ref}, ok
	case public != nil:
		return Source{Kind: SourceGit, Repo: public.Repo, Ref: public.Branch, Directory: folder.Clean(public.Directory)}, true
	case connected != nil:
		return Source{Kind: SourceGit, Repo: connected.Repo, Ref: connected.Branch, Connected: true,
			Directory: folder.Clean(connected.Directory)}, true
	}
	return Source{}, false
}

var ociForm = regexp.MustCompile(`^oci://([^/@\s]+/[^:@\s]+)(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(sha256:[0-9a-f]{64}))$`)

// splitOCI reads the address of an artifact: "host/path", and its tag or digest.
func splitOCI(address string) (repo, ref string, ok bool) {
	m := ociForm.FindStringSubmatch(address)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2] + m[3], true
}
