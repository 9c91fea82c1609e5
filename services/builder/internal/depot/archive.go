package depot

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/database"
)

// BadSource is the error of a source that cannot be packed, for people: it will
// be no better the next time.
type BadSource struct{ cause error }

func (e *BadSource) Error() string { return "the source cannot be used: " + e.cause.Error() }
func (e *BadSource) Unwrap() error { return e.cause }

// PushArchive makes the uploaded archive with this digest an artifact of the
// org's registry and says where it is. The same archive is the same artifact,
// and what the registry has is not sent again.
func (d *Depot) PushArchive(ctx context.Context, orgID, blob string) (jobspec.Artifact, error) {
	var body []byte
	err := d.store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) (err error) {
		body, err = tx.BuilderBlob(ctx, blob)
		return err
	})
	if err != nil {
		return jobspec.Artifact{}, fmt.Errorf("source archive %s: %w", blob, err)
	}
	return d.push(ctx, orgID, oci.PackInput{Archive: bytes.NewReader(body)})
}

// PushDirectory is PushArchive for what fill writes into a directory, which is
// made for it and removed.
func (d *Depot) PushDirectory(ctx context.Context, orgID string, fill func(dir string) error) (jobspec.Artifact, error) {
	temp, err := os.MkdirTemp(d.temp, "export-")
	if err != nil {
		return jobspec.Artifact{}, fmt.Errorf("source: %w", err)
	}
	defer remove(temp)
	if err := fill(temp); err != nil {
		return jobspec.Artifact{}, err
	}
	return d.push(ctx, orgID, oci.PackInput{Dir: temp})
}

func (d *Depot) push(ctx context.Context, orgID string, in oci.PackInput) (jobspec.Artifact, error) {
	var none jobspec.Artifact
	temp, err := os.MkdirTemp(d.temp, "source-")
	if err != nil {
		return none, fmt.Errorf("source: %w", err)
	}
	defer remove(temp)
	layout, err := oci.Open(temp)
	if err != nil {
		return none, fmt.Errorf("source: %w", err)
	}
	in.Kind, in.TempDir = oci.KindSource, temp
	packed, err := oci.Pack(ctx, layout, in)
	if err != nil {
		if ctx.Err() != nil || isDisk(err) {
			return none, fmt.Errorf("source: %w", err)
		}
		return none, &BadSource{cause: err}
	}
	artifact := jobspec.Artifact{Repository: SourceRepository(orgID), Digest: packed.Digest.String()}
	if _, err := d.remote(orgID, artifact.Repository).Push(ctx, layout, artifact.Digest, oci.TransferOptions{}); err != nil {
		return none, fmt.Errorf("push source: %w", err)
	}
	return artifact, nil
}

// remove deletes scratch. What stays behind is in builder's own tmp folder.
func remove(dir string) { _ = os.RemoveAll(dir) }

// SourceRepository is where the sources of an org are that travel as archives.
func SourceRepository(orgID string) string { return orgID + "/sources" }
