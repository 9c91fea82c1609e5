package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// RegistryRemote reads the address of a registry's folder, "oci://host/path", and
// the name of a repository in it. It is asked anonymously, over HTTPS unless it is
// on this machine.
func RegistryRemote(address, name string) (Remote, error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "oci://"), "/")
	if path = strings.Trim(path, "/"); path != "" {
		path += "/"
	}
	r := Remote{Registry: host, Repository: path + name, PlainHTTP: isLoopback(host)}
	return r, r.Validate()
}

// errEnough ends a list.
var errEnough = errors.New("enough")

// Tags lists the tags of a repository. More than limit are an error.
func Tags(ctx context.Context, src Remote, limit int) ([]string, error) {
	repo, err := src.open()
	if err != nil {
		return nil, err
	}
	var tags []string
	err = repo.Tags(ctx, "", func(page []string) error {
		if tags = append(tags, page...); len(tags) > limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil, fmt.Errorf("%s has more than %d tags", src, limit)
	}
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok && answer.StatusCode == http.StatusNotFound {
		err = fmt.Errorf("%s: %w", src, ErrNotFound)
	}
	return tags, err
}

// ReadManifest reads the manifest behind a tag.
func ReadManifest(ctx context.Context, src Remote, tag string) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	repo, err := src.open()
	if err != nil {
		return m, err
	}
	desc, body, err := repo.Manifests().FetchReference(ctx, tag)
	if err != nil {
		return m, err
	}
	defer body.Close()
	if desc.Size > maxManifestBytes {
		return m, fmt.Errorf("manifest %s of %s is larger than %d bytes", tag, src, maxManifestBytes)
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxManifestBytes))
	if err != nil {
		return m, err
	}
	if digest.FromBytes(raw) != desc.Digest {
		return m, fmt.Errorf("manifest %s of %s is not what its digest says", tag, src)
	}
	return m, json.Unmarshal(raw, &m)
}

// OpenBlob opens a blob of a repository. What is read is not checked.
func OpenBlob(ctx context.Context, src Remote, dgst digest.Digest) (io.ReadCloser, error) {
	repo, err := src.open()
	if err != nil {
		return nil, err
	}
	_, body, err := repo.Blobs().FetchReference(ctx, dgst.String())
	return body, err
}

// Tag names an artifact of the repository, in place of what had the tag.
func Tag(ctx context.Context, dst Remote, dgst digest.Digest, tag string) error {
	repo, err := dst.open()
	if err != nil {
		return err
	}
	desc, err := repo.Resolve(ctx, dgst.String())
	if err != nil {
		return err
	}
	return repo.Tag(ctx, desc, tag)
}
