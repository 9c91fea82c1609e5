package depot

import (
	"context"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
)

// CopyImage copies an image of another registry, for all its platforms and with
// what refers to it, into a repository of the org, and returns its size in bytes.
// What the repository has of it is not sent again.
func (d *Depot) CopyImage(ctx context.Context, orgID string, from oci.Remote, to jobspec.Artifact) (int64, error) {
	dgst, err := digest.Parse(to.Digest)
	if err != nil {
		return 0, err
	}
	repository := d.remote(orgID, to.Repository)
	size, err := from.Copy(ctx, dgst, repository, oci.TransferOptions{Referrers: true})
	if err != nil {
		return 0, err
	}
	if err := from.AdoptBy(ctx, dgst, repository); err != nil && !oci.Denied(err) { // many answer so for what they do not have
		return 0, err
	}
	return size, nil
}
