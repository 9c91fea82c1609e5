package build

import (
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// defaultTimeout of a build that sets none.
const defaultTimeout = 30 * time.Minute

// timeoutOf reads build_timeout of a revision; the sandbox has none.
func timeoutOf(revision json.RawMessage) time.Duration {
	var keys struct {
		BuildTimeout place.Duration `json:"build_timeout"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil || keys.BuildTimeout <= 0 {
		return defaultTimeout
	}
	return keys.BuildTimeout.Std()
}

// placeOf reads from a revision which file of the app folder defines the
// component, and which directory of the folder is its source, "" for none.
func placeOf(revision json.RawMessage) (file, directory string) {
	var keys struct {
		At    place.Place `json:"at"`
		Berth struct {
			LocalSource string `json:"local_source"`
		} `json:"berth"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return "", ""
	}
	return keys.At.File, keys.Berth.LocalSource
}

// kustomizeOf reads from a revision how kustomize makes the manifest; nil when it
// does not.
func kustomizeOf(revision json.RawMessage) *jobspec.Kustomize {
	var keys struct {
		KubernetesManifest struct {
			Kustomize *jobspec.Kustomize `json:"kustomize"`
		} `json:"kubernetes_manifest"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return nil
	}
	return keys.KubernetesManifest.Kustomize
}

// dockerOf reads from a revision how an image is built; nil when none is.
func dockerOf(revision json.RawMessage) *jobspec.Docker {
	var keys struct {
		DockerBuild *jobspec.Docker `json:"docker_build"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return nil
	}
	return keys.DockerBuild
}

// pulumiOf reads from a revision how a program of Pulumi is built; nil when it is none.
func pulumiOf(revision json.RawMessage) *jobspec.PulumiBuild {
	var keys struct {
		Pulumi *jobspec.PulumiBuild `json:"pulumi"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return nil
	}
	return keys.Pulumi
}

// extensionOf reads from a revision who must have signed the component's plugin, and
// which tool its Terraform module is for; "" for a component without one.
func extensionOf(revision json.RawMessage) (signer, tool string) {
	var keys struct {
		Berth struct {
			Tool   string `json:"tool"`
			Plugin struct {
				Signer string `json:"signer"`
			} `json:"plugin"`
		} `json:"berth"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return "", ""
	}
	return keys.Berth.Plugin.Signer, keys.Berth.Tool
}

// imageKeyOf reads from a revision which key must have signed the image, "" for none.
func imageKeyOf(revision json.RawMessage) string {
	var keys struct {
		Berth struct {
			ImageKey string `json:"image_key"`
		} `json:"berth"`
	}
	if err := json.Unmarshal(revision, &keys); err != nil {
		return ""
	}
	return keys.Berth.ImageKey
}

// specOf is the job that builds b. What to deploy with it (variables, values) is
// no part of it. url is what a git source is cloned from.
func specOf(b Build, url string) jobspec.Spec {
	src := jobspec.Source{Push: repositoryOf(b), Kustomize: b.Kustomize, Docker: b.Docker, Pulumi: b.Pulumi, Tool: b.Tool}
	if b.Docker != nil && b.KeepCache {
		src.Cache = oci.CacheRepository(b.OrgID, b.AppID, b.ComponentID)
	}
	switch archive := b.Provenance.Source.Archive; {
	case archive != nil:
		src.Kind, src.Archive, src.Directory = "archive", archive, b.Directory
		switch b.Source.Kind {
		case source.KindGit: // on disk; what it was is for errors
			src.Repo, src.Ref, src.Commit, src.Directory = b.Source.Repo, b.Source.Ref, b.Commit, b.Source.Directory
		case source.KindOCI:
			src.Repo, src.Ref, src.Directory = b.Source.Repo, b.Commit, ""
		case source.KindChart:
			pin, _ := source.ReadPin(b.Commit)
			src.Repo, src.Ref, src.Directory = b.Source.Repo, b.Source.Ref, ""
			src.Chart = &jobspec.Chart{Name: b.Source.Directory, Version: pin.Version, Digest: pin.Digest, Before: b.Before}
		}
	case b.Source.Kind == source.KindImage:
		src.Kind, src.Image, src.Ref, src.ImageDigest, src.ImageKey = "image", b.Source.Repo, b.Source.Ref, b.Source.Content(b.Commit), b.ImageKey
		if pin, ok := source.ReadPin(b.Commit); ok {
			src.Ref = pin.Version
		}
	default:
		src.Kind, src.Repo, src.Ref, src.Commit, src.Directory = "git", url, b.Source.Ref, b.Commit, b.Source.Directory
	}
	return jobspec.Spec{
		Version: jobspec.Version, OrgID: b.OrgID, BuildID: b.ID, File: b.File,
		Kind: kindOf(b.Type), Operation: jobspec.OperationBuild,
		Source: &src, TimeoutSeconds: int(b.Timeout.Seconds()), Policies: b.Policies,
	}
}

// kindOf is the kind of the job that builds a type of component, a sandbox or
// scripts.
func kindOf(buildable string) jobspec.Kind {
	if jobspec.Kind(buildable) == jobspec.KindScripts {
		return jobspec.KindScripts
	}
	return jobspec.OfComponent(buildable)
}

// repositoryOf is where the artifact of b belongs: "<org_id>/<app>/<component>".
// A name that registries do not accept is replaced by the id.
func repositoryOf(b Build) string {
	return b.OrgID + "/" + oci.PathElement(b.App, b.AppID) + "/" + oci.PathElement(b.Component, b.ComponentID)
}

// resolvedDigest identifies what is built, and of what exactly: builds with the
// same one make the same artifact. An image is the same by whatever name and tag
// it was found, and so is a chart.
func resolvedDigest(b Build, commit string) string {
	what := b.BuildDigest
	switch b.Source.Kind {
	case source.KindImage, source.KindChart:
		what = string(b.Source.Kind)
		if b.ImageKey != "" { // who must have signed it was checked by the build that copied it
			what += " " + b.ImageKey
		}
		if len(b.Policies) > 0 { // and what they say was asked for that build
			what += " " + capsule.DigestBytes(mustJSON(policy.Identity(b.Policies)))
		}
	case source.KindOCI: // who must have signed it is checked when it is fetched
		what = string(b.Source.Kind) + " " + b.Type + " " + b.Signer
	}
	return capsule.DigestBytes(mustJSON([]any{"berth/build/v1", what, b.Source.Content(commit)}))
}
