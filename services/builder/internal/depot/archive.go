package depot

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/internal/store"
)

// BadArchive is the error of an uploaded archive that cannot be used, for
// people: it will be no better the next time.
type BadArchive struct{ cause error }

func (e *BadArchive) Error() string { return "the uploaded source cannot be used: " + e.cause.Error() }
func (e *BadArchive) Unwrap() error { return e.cause }

// PushSource makes the uploaded archive with this digest an artifact of the
// org's registry and says where it is. The same archive is the same artifact,
// and what the registry has is not sent again.
func (d *Depot) PushSource(ctx context.Context, orgID, blob string) (jobspec.Artifact, error) {
	var none jobspec.Artifact
	var body []byte
	err := d.store.Tx(ctx, orgID, func(ctx context.Context, tx *store.Tx) (err error) {
		body, err = tx.BuilderBlob(ctx, blob)
		return err
	})
	if err != nil {
		return none, fmt.Errorf("source archive %s: %w", blob, err)
	}
	temp, err := os.MkdirTemp(d.temp, "source-")
	if err != nil {
		return none, fmt.Errorf("source archive: %w", err)
	}
	defer os.RemoveAll(temp)
	layout, err := oci.Open(temp)
	if err != nil {
		return none, fmt.Errorf("source archive: %w", err)
	}
	packed, err := oci.Pack(ctx, layout, oci.PackInput{Kind: oci.KindSource, Archive: bytes.NewReader(body), TempDir: temp})
	if err != nil {
		if ctx.Err() != nil || isDisk(err) {
			return none, fmt.Errorf("source archive: %w", err)
		}
		return none, &BadArchive{cause: err}
	}
	artifact := jobspec.Artifact{Repository: SourceRepository(orgID), Digest: packed.Digest.String()}
	if _, err := oci.Push(ctx, layout, artifact.Digest, d.remote(orgID, artifact.Repository), "", oci.TransferOptions{}); err != nil {
		return none, fmt.Errorf("push source archive: %w", err)
	}
	return artifact, nil
}

// SourceRepository is where the uploaded sources of an org are.
func SourceRepository(orgID string) string { return orgID + "/sources" }
