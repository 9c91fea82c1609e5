package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// builders are the engines with builds, and which rules of builds have no meaning
// for them. docs/reference/plugin-contract.md shows this table.
var builders = []struct {
	name          string
	notApplicable map[string]string
	// job makes the job directories of a row: one for each order.
	job    func(t *testing.T) func(o conformance.Order) *jobDir
	secret string
	// built names what a build left; built of a folder when nil.
	built func(out string) (string, error)
}{
	{name: "terraform_module", notApplicable: ofFolders("the engine packs a folder and starts nothing"), job: folders(func(t *testing.T, text string) *jobDir {
		return archiveJob(t, map[string]string{"main.tf": fmt.Sprintf("output \"text\" { value = %q }\n", text)})
	})},
	{name: "helm_chart", notApplicable: ofFolders("Helm's library is a part of the engine"), job: folders(func(t *testing.T, text string) *jobDir {
		return chartArchive(t, map[string]string{"Chart.yaml": chartYAML, "templates/all.yaml": configMap("hall", text)})
	})},
	{name: "kustomize", notApplicable: ofFolders("kustomize's library is a part of the engine"), job: folders(func(t *testing.T, text string) *jobDir {
		return kustomizeJob(t, jobspec.Kustomize{Path: "."}, map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\nnamePrefix: my-\n", "all.yaml": configMap("hall", text),
		})
	})},
	{name: "scripts", notApplicable: ofFolders("the engine packs a folder and starts nothing"), job: folders(func(t *testing.T, text string) *jobDir {
		j := archiveJob(t, map[string]string{"say.sh": "echo " + text + "\n"})
		j.spec.Kind = jobspec.KindScripts
		return j
	})},
	{
		name: "docker_build", secret: buildSecretOfTest, job: imagesFor, built: builtImage,
	},
}

// ofFolders is what holds for the builds of folders.
func ofFolders(noTool string) map[string]string {
	return with(noneOf("an archive needs no credential and no secret; tests of private repositories are apart", "build-secrets", "build-credential"), noneOf(noTool, "build-tool"))
}

// folders makes jobs of a folder with a text in it.
func folders(job func(t *testing.T, text string) *jobDir) func(t *testing.T) func(conformance.Order) *jobDir {
	return func(t *testing.T) func(conformance.Order) *jobDir {
		return func(o conformance.Order) *jobDir { return job(t, wishes[o.Config][0]) }
	}
}

func TestConformanceOfBuilds(t *testing.T) {
	t.Parallel()
	engine, err := executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range builders {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			job, built := b.job(t), b.built
			if built == nil {
				built = builtFolder
			}
			conform(t, conformance.Subject{
				Name: "builds of " + b.name, Command: []string{engine}, NotApplicable: b.notApplicable, BuildSecret: b.secret,
				Timeout:  busyMachine,
				NewWorld: func(string) (conformance.World, error) { return buildWorld{job: job, built: built}, nil },
			}, conformance.Builds())
		})
	}
}

// buildWorld is a source. Builds change nothing else.
type buildWorld struct {
	job   func(conformance.Order) *jobDir
	built func(out string) (string, error)
}

// Job implements World.
func (w buildWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	return given(w.job(o), dir)
}

// Built implements Builder.
func (w buildWorld) Built(out string) (string, error) { return w.built(out) }

// Look implements World.
func (buildWorld) Look(context.Context) (string, error) { return "", nil }

// Drift implements World.
func (buildWorld) Drift(context.Context) error { return errors.New("a build does not drift") }

// Killed implements World.
func (buildWorld) Killed() error { return nil }

// builtFolder is the digest of all names, modes and bytes.
func builtFolder(out string) (string, error) {
	all := digest.SHA256.Digester()
	root := filepath.Join(out, "artifact")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(all.Hash(), "%s %s %q\n", strings.TrimPrefix(path, root), info.Mode(), raw)
		return err
	})
	return all.Digest().String(), err
}

// builtImage is the digest of an image. What refers to it has times.
func builtImage(out string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(out, "image/index.json"))
	if err != nil {
		return "", err
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return "", err
	}
	if len(index.Manifests) < 2 {
		return "", errors.New("nothing says where the image comes from")
	}
	return index.Manifests[0].Digest.String(), nil
}

const buildSecretOfTest = "canary-build-secret"

// imagesFor are builds on a private base, with a secret. Org 2 has no login.
func imagesFor(t *testing.T) func(conformance.Order) *jobDir {
	k := newKitchen(t, buildkit.Settings{})
	base := k.job(t, jobspec.Docker{}, map[string]string{"Dockerfile": "FROM scratch\nCOPY busybox /bin/\n"})
	base.must(t)
	host := base.image(t).serve(t, base)
	k.write(t, "org_1/config.json", loginTo(host))
	for _, org := range []string{"org_1", "org_2"} {
		k.write(t, org+"/secrets/token", buildSecretOfTest)
	}
	dockerfile := "FROM " + host + "/shop/base:1\nSHELL [\"/bin/busybox\", \"sh\", \"-euc\"]\nCOPY text /\n" +
		"RUN --mount=type=secret,id=token /bin/busybox sha256sum /run/secrets/token > /proof\n"
	return func(o conformance.Order) *jobDir {
		org := "org_1"
		if o.Lacks == conformance.LacksCredential {
			org = "org_2"
		}
		j := k.jobOf(t, org, jobspec.Docker{Secrets: []string{"token"}}, map[string]string{"Dockerfile": dockerfile, "text": wishes[o.Config][0]})
		if o.Lacks == conformance.LacksTool {
			delete(j.env, "BERTH_BUILDCTL")
			delete(j.env, "BERTH_BUILDKIT_ADDR")
		}
		return j
	}
}
