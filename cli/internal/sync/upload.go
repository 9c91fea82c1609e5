package sync

import (
	"bytes"
	"context"
	"io"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Upload sends those archives that the control plane does not have.
func Upload(ctx context.Context, client *api.Client, archives []Archive) error {
	ask := ctlapi.BlobDigests{}
	have := map[string][]byte{}
	for _, a := range archives {
		if _, ok := have[a.Digest]; !ok {
			ask.Digests = append(ask.Digests, a.Digest)
			have[a.Digest] = a.Bytes
		}
	}
	resp, err := client.FindMissingBlobsWithResponse(ctx, &ctlapi.FindMissingBlobsParams{}, ask)
	if err != nil {
		return err
	}
	body, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	for _, digest := range body.Missing {
		if _, err := client.PutBlobWithBodyWithResponse(ctx, digest, "application/octet-stream", io.Reader(bytes.NewReader(have[digest]))); err != nil {
			return err
		}
	}
	return nil
}
