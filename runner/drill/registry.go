package drill

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
)

// artifact is the directory of a script as a registry keeps it.
type artifact struct {
	manifest, layer ocispec.Descriptor
	files           map[digest.Digest][]byte
}

// pack packs a directory with one script.
func pack(ctx context.Context, text string) (a artifact, err error) {
	dir, err := os.MkdirTemp("", "berth-drill-pack-*")
	if err != nil {
		return a, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "check.sh"), []byte(text), 0o755); err != nil {
		return a, err
	}
	store := memory.New()
	a.manifest, err = oci.Pack(ctx, store, oci.PackInput{Kind: oci.Kind(jobspec.KindScripts), Dir: dir})
	if err != nil {
		return a, err
	}
	raw, err := content.FetchAll(ctx, store, a.manifest)
	if err != nil {
		return a, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return a, err
	}
	a.files = map[digest.Digest][]byte{a.manifest.Digest: raw}
	for _, d := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		if a.files[d.Digest], err = content.FetchAll(ctx, store, d); err != nil {
			return a, err
		}
	}
	a.layer = m.Layers[0]
	return a, nil
}

// withLayer is a with another layer, whose digests are right.
func (a artifact) withLayer(body []byte) (artifact, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(a.files[a.manifest.Digest], &m); err != nil {
		return a, err
	}
	out := artifact{files: map[digest.Digest][]byte{}, manifest: a.manifest, layer: a.layer}
	for d, text := range a.files {
		if d != a.manifest.Digest && d != a.layer.Digest {
			out.files[d] = text
		}
	}
	out.layer.Digest, out.layer.Size = digest.FromBytes(body), int64(len(body))
	m.Layers = []ocispec.Descriptor{out.layer}
	raw, err := json.Marshal(m)
	if err != nil {
		return a, err
	}
	out.manifest.Digest, out.manifest.Size = digest.FromBytes(raw), int64(len(raw))
	out.files[out.layer.Digest], out.files[out.manifest.Digest] = body, raw
	return out, nil
}

// scriptsRepository is where the registry keeps them.
const scriptsRepository = "org/shop/ops"

// serve puts an artifact into the plane's registry, after the attacker's changes.
func (s *scene) serve(a artifact, edit func(paths map[digest.Digest]*served)) {
	paths := map[digest.Digest]*served{}
	for d, body := range a.files {
		kind := "application/octet-stream"
		if d == a.manifest.Digest {
			kind = ocispec.MediaTypeImageManifest
		}
		paths[d] = &served{kind: kind, body: body}
	}
	edit(paths)
	s.plane.change(func() {
		for d, what := range paths {
			where := "blobs"
			if d == a.manifest.Digest {
				where = "manifests"
			}
			s.plane.blobs["/v2/"+scriptsRepository+"/"+where+"/"+d.String()] = *what
		}
	})
}

// inDirectory is a check whose command is in the directory of an artifact.
func inDirectory(name string, a artifact) jobspec.Script {
	return jobspec.Script{TimeoutSeconds: 60, Action: jobspec.Action{Name: name, ReadOnly: true, Steps: []jobspec.ActionStep{{
		Name: "one", Command: "./check.sh", Artifact: &jobspec.Artifact{Repository: scriptsRepository, Digest: a.manifest.Digest.String()},
	}}}}
}

// takes has a release planned and accepted, and then runs a script of it. The result is that
// of the first step that does not succeed.
func (s *scene) takes(ctx context.Context, release jobspec.Release, script jobspec.Script) (jobspec.Result, error) {
	spec := jobspec.Spec{Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Release: &release}
	job, err := s.give(spec)
	if err != nil {
		return jobspec.Result{}, err
	}
	planned, err := s.result(ctx, job)
	if err != nil || planned.Outcome != jobspec.OutcomeSucceeded {
		return planned, err
	}
	plan := s.planOf(job)
	apply, granted := applyOf(spec, plan)
	if result, err := s.do(ctx, apply, granted); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
		return result, err
	}
	return s.do(ctx, run(script))
}

// acceptAndRun is takes for a release with one script more.
func (s *scene) acceptAndRun(ctx context.Context, script jobspec.Script) (jobspec.Result, error) {
	return s.takes(ctx, jobspec.Release{ID: id.New(id.Release), Number: firstRelease, Scripts: append(slices.Clone(s.accepted), script)}, script)
}

// runs is the text of a script that leaves a line.
func runs(name string) string { return "#!/bin/sh\necho ran >> \"$BERTH_INSTALL_DIR/" + name + "\"\n" }

// registryGroup: directories of scripts from a registry that lies.
func registryGroup() group {
	lies := func(name, try string, edit func(evil artifact, paths map[digest.Digest]*served, honest artifact)) Attack {
		return Attack{Name: name, Adversary: Registry, Try: try, World: inFile(name), run: func(ctx context.Context, s *scene) (finding, error) {
			honest, err := pack(ctx, "#!/bin/sh\necho honest, for "+name+"\n")
			if err != nil {
				return finding{}, err
			}
			evil, err := pack(ctx, runs(name))
			if err != nil {
				return finding{}, err
			}
			s.serve(honest, func(paths map[digest.Digest]*served) { edit(evil, paths, honest) })
			return ran(s, name, func() (jobspec.Result, error) { return s.acceptAndRun(ctx, inDirectory(name, honest)) })
		}}
	}
	unpacks := func(name, try string, entries func(dir string) []tar.Header) Attack {
		return Attack{Name: name, Adversary: Registry, Try: try, World: "a file in the runner's data directory", run: func(ctx context.Context, s *scene) (finding, error) {
			target := filepath.Join(s.dir.Path(), name+".evil")
			layer, err := archive(entries(s.dir.Path()), runs(name))
			if err != nil {
				return finding{}, err
			}
			honest, err := pack(ctx, runs(name))
			if err != nil {
				return finding{}, err
			}
			evil, err := honest.withLayer(layer)
			if err != nil {
				return finding{}, err
			}
			s.serve(evil, func(map[digest.Digest]*served) {})
			result, err := s.acceptAndRun(ctx, inDirectory(name, evil))
			if err != nil {
				return finding{}, err
			}
			found, err := exists(target)
			return finding{effect: found, rule: ruleOf(result)}, err
		}}
	}
	return group{
		name: "registry", shape: func() shape { return shape{} },
		allowed: Attack{Name: "registry", Adversary: Registry, Try: "a directory as it was accepted", World: inFile("registry"), run: func(ctx context.Context, s *scene) (finding, error) {
			a, err := pack(ctx, runs("registry"))
			if err != nil {
				return finding{}, err
			}
			s.serve(a, func(map[digest.Digest]*served) {})
			return ran(s, "registry", func() (jobspec.Result, error) { return s.acceptAndRun(ctx, inDirectory("registry", a)) })
		}},
		attacks: []Attack{
			lies("registry-other-layer", "another layer under the digest of the accepted one", func(evil artifact, paths map[digest.Digest]*served, honest artifact) {
				paths[honest.layer.Digest].body = evil.files[evil.layer.Digest]
			}),
			lies("registry-other-manifest", "another manifest under the digest of the accepted one", func(evil artifact, paths map[digest.Digest]*served, honest artifact) {
				for d, body := range evil.files {
					if d != evil.manifest.Digest {
						paths[d] = &served{kind: "application/octet-stream", body: body}
					}
				}
				paths[honest.manifest.Digest].body = evil.files[evil.manifest.Digest]
			}),
			{
				Name: "registry-without-end", Adversary: Registry, Try: "a layer that never ends", World: "how much the runner's data directory has grown",
				run: func(ctx context.Context, s *scene) (finding, error) {
					a, err := pack(ctx, "#!/bin/sh\necho endless\n")
					if err != nil {
						return finding{}, err
					}
					s.serve(a, func(paths map[digest.Digest]*served) { paths[a.layer.Digest].endless = true })
					before, err := sizeOf(s.dir.Path())
					if err != nil {
						return finding{}, err
					}
					result, err := s.acceptAndRun(ctx, inDirectory("endless", a))
					if err != nil {
						return finding{}, err
					}
					after, err := sizeOf(s.dir.Path())
					return finding{effect: after-before > 16<<20 || result.Outcome == jobspec.OutcomeSucceeded, rule: ruleOf(result)}, err
				},
			},
			unpacks("registry-climbs", "an archive whose file is above its directory", func(string) []tar.Header {
				var list []tar.Header
				for up := "../"; len(up) < 3*8; up += "../" {
					list = append(list, tar.Header{Name: up + "registry-climbs.evil", Typeflag: tar.TypeReg, Mode: 0o644})
				}
				return list
			}),
			unpacks("registry-links", "an archive with a link to the outside, and a file behind it", func(dir string) []tar.Header {
				return []tar.Header{
					{Name: "out", Typeflag: tar.TypeSymlink, Linkname: dir, Mode: 0o777},
					{Name: "out/registry-links.evil", Typeflag: tar.TypeReg, Mode: 0o644},
				}
			}),
		},
	}
}

// archive is a layer with these entries and a script.
func archive(entries []tar.Header, script string) ([]byte, error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, h := range append([]tar.Header{{Name: "check.sh", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))}}, entries...) {
		if err := tw.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Size > 0 {
			if _, err := io.WriteString(tw, script); err != nil {
				return nil, err
			}
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	err := zw.Close()
	return buf.Bytes(), err
}

// sizeOf is how many bytes the files of a directory have.
func sizeOf(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil // what goes away meanwhile does not count
	})
	if err != nil {
		err = fmt.Errorf("size of %s: %w", dir, err)
	}
	return sum, err
}
