package image

import (
	"context"
	"fmt"
	"net"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Push copies the image with a tag from a layout to a repository, HOST/NAME,
// with the documents about it. It speaks plain HTTP to this machine and HTTPS
// to others, with the credentials of Docker's configuration file.
func Push(ctx context.Context, layout, tag, repository string) (ocispec.Descriptor, error) {
	src, err := oci.NewFromFS(ctx, os.DirFS(layout))
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("%s: %w", layout, err)
	}
	dst, err := remote.NewRepository(repository)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	dst.PlainHTTP = loopback(dst.Reference.Host())
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	dst.Client = &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache(), Credential: credentials.Credential(store)}

	desc, err := oras.Copy(ctx, src, tag, dst, tag, oras.DefaultCopyOptions)
	if err != nil {
		return desc, fmt.Errorf("push %s:%s: %w", repository, tag, err)
	}
	images, err := Images(ctx, src, desc)
	if err != nil {
		return desc, err
	}
	for _, image := range images {
		documents, err := src.Predecessors(ctx, image)
		if err != nil {
			return desc, err
		}
		for _, document := range documents {
			if document.MediaType != ocispec.MediaTypeImageManifest { // the index itself
				continue
			}
			if err := oras.CopyGraph(ctx, src, dst, document, oras.DefaultCopyGraphOptions); err != nil {
				return desc, fmt.Errorf("push what is attached to %s@%s: %w", repository, image.Digest, err)
			}
		}
	}
	return desc, nil
}

func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(name)
	return name == "localhost" || (ip != nil && ip.IsLoopback())
}
