package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// manifestFile is the one file of a manifest's artifact and of its source.
const manifestFile = "manifest.yaml"

// maxManifest bounds a manifest, in bytes: all of it is in every plan.
const maxManifest = 4 << 20

// KubernetesManifest keeps a manifest as it is: it is a template, so what is in
// it shows when an install renders it. One that kustomize makes is made here.
func KubernetesManifest(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	if j.Spec.Source.Kustomize != nil {
		return kustomized(ctx, j)
	}
	root, err := source(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	info, err := os.Lstat(filepath.Join(root, manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return jobspec.Result{}, job.Wrongf(correct(j, "its source")+", or add that file", "%s: there is no %s", describe(j.Spec.Source), manifestFile)
	case err != nil:
		return jobspec.Result{}, err
	case !info.Mode().IsRegular():
		return jobspec.Result{}, job.Wrongf(correct(j, "its source"), "%s: %s is not a file", describe(j.Spec.Source), manifestFile)
	case info.Size() > maxManifest:
		return jobspec.Result{}, job.Wrongf("make several components of it", "%s: %s has %d bytes, at most %d are possible",
			describe(j.Spec.Source), manifestFile, info.Size(), maxManifest)
	}
	data, err := os.ReadFile(filepath.Join(root, manifestFile))
	if err != nil {
		return jobspec.Result{}, err
	}
	text := string(data)
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return jobspec.Result{}, job.Wrongf("save it as UTF-8", "%s: %s is not text in UTF-8", describe(j.Spec.Source), manifestFile)
	case strings.TrimSpace(text) == "":
		return jobspec.Result{}, job.Wrongf("write the manifest into it, or remove the component", "%s: %s is empty", describe(j.Spec.Source), manifestFile)
	}
	j.Logf("kubernetes manifest of %d bytes", len(text))
	return jobspec.Result{}, job.WriteFile(j.Out("artifact", manifestFile), data)
}
