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
	return from.Copy(ctx, dgst, d.remote(orgID, to.Repository), oci.TransferOptions{Referrers: true})
}
