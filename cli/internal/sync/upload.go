package sync

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Upload sends those archives that the control plane does not have, and says so
// when that may take a while.
func Upload(ctx context.Context, client *api.Client, archives []Archive, say io.Writer) error {
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
	var sizes []int
	for _, digest := range body.Missing {
		sizes = append(sizes, len(have[digest]))
	}
	if line := uploading(sizes); line != "" {
		output.Println(say, line)
	}
	for _, digest := range body.Missing {
		if _, err := client.PutBlobWithBodyWithResponse(ctx, digest, "application/octet-stream", io.Reader(bytes.NewReader(have[digest]))); err != nil {
			return err
		}
	}
	return nil
}

// quietUpload is how many bytes are sent without a word: about a second on a slow
// line.
const quietUpload = 1 << 20

// uploading says how much is sent, "" when it is little. Sizes are in bytes.
func uploading(sizes []int) string {
	total := 0
	for _, size := range sizes {
		total += size
	}
	if total < quietUpload {
		return ""
	}
	return fmt.Sprintf("uploading %s, %.1f MiB", output.Plural(len(sizes), "archive"), float64(total)/(1<<20))
}
