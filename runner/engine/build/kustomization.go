package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/build/kustomize"
	"github.com/berth-dev/berth/runner/engine/job"
)

// kustomized is a manifest that kustomize makes of the source.
func kustomized(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	root, err := source(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	s := j.Spec.Source
	base := s.Directory
	if s.Kind == "archive" {
		base = "" // the archive is the directory
	}
	web := newElsewhere(j)
	manifest, err := kustomize.Build(ctx, kustomize.Config{
		Source: root, Base: base, Path: s.Kustomize.Path, Patches: s.Kustomize.Patches,
		EnableHelm: s.Kustomize.EnableHelm, AllFiles: s.Kustomize.LoadRestrictor == "none",
		Repository: web.repository, File: web.file, Chart: web.chart, Logf: j.Logf,
	})
	if err != nil {
		return jobspec.Result{}, kustomizeFailure(ctx, j, err)
	}
	switch {
	case strings.TrimSpace(string(manifest)) == "":
		return jobspec.Result{}, job.Wrongf("add resources to it, or remove the component", "%s: the kustomization %s makes no objects", describe(s), s.Kustomize.Path)
	case len(manifest) > maxManifest:
		return jobspec.Result{}, job.Wrongf("make several components of it", "%s: the kustomization makes a manifest of %d bytes, at most %d are possible",
			describe(s), len(manifest), maxManifest)
	}
	j.Logf("kustomize made a manifest of %d bytes", len(manifest))
	if err := os.MkdirAll(j.Out("artifact"), 0o700); err != nil {
		return jobspec.Result{}, err
	}
	return jobspec.Result{}, job.WriteFile(j.Out("artifact", manifestFile), manifest)
}

// kustomizeFailure is a fault of the source, unless fetching said that it is
// another one.
func kustomizeFailure(ctx context.Context, j *job.Job, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := errors.AsType[*job.Failure](err); ok {
		said := *f
		said.Message = describe(j.Spec.Source) + ": " + strings.Join(strings.Fields(err.Error()), " ")
		return &said
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	remedy := "correct " + filepath.ToSlash(filepath.Join(j.Spec.Source.Directory, j.Spec.Source.Kustomize.Path))
	if j.Spec.File != "" {
		remedy += ", or kustomize in " + j.Spec.File
	}
	if strings.Contains(text, "MalformedYAML") || strings.Contains(text, "yaml: line") || strings.Contains(text, "invalid Kustomization") {
		remedy += "; a template may be a value, not a line of its own, since kustomize reads the files before templates are rendered"
	}
	return job.Wrongf(fmt.Sprintf("%s; `kustomize build` there says more", remedy), "%s: %s", describe(j.Spec.Source), text)
}
