package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// maxBlob is how large an uploaded archive may be.
const maxBlob = 64 << 20

// BodyLimits are those that differ from httpserver's, by operation.
func BodyLimits() map[string]int64 { return map[string]int64{"PutBlob": maxBlob} }

// PutBlob stores an archive under its digest.
func (s *Server) PutBlob(ctx context.Context, req apigen.PutBlobRequestObject) (apigen.PutBlobResponseObject, error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBlob+1))
	if status, _ := intake.Status(err); status != 0 {
		return nil, err // too large, too slow, or too many at once
	}
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "the upload was cut short")
	}
	if len(body) > maxBlob {
		return nil, fault.With(fault.Newf(fault.ErrTooLarge, "the archive is larger than %d MiB", maxBlob>>20), fault.Remedy("leave large files out of the source"))
	}
	sum := sha256.Sum256(body)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != req.Digest {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the uploaded bytes have the digest %s", got), fault.Code("digest_mismatch"))
	}
	blob, fresh := apigen.Blob{Digest: req.Digest, SizeBytes: int64(len(body))}, false
	err = s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		n, err := tx.InsertBlob(ctx, ctldb.InsertBlobParams{Digest: req.Digest, SizeBytes: blob.SizeBytes, Body: body})
		if fresh = n == 1; !fresh {
			return "", err
		}
		return "upload " + req.Digest, err
	})
	if err != nil {
		return nil, err
	}
	if fresh {
		return apigen.PutBlob201JSONResponse(blob), nil
	}
	return apigen.PutBlob200JSONResponse(blob), nil
}

// FindMissingBlobs answers what must be uploaded.
func (s *Server) FindMissingBlobs(ctx context.Context, req apigen.FindMissingBlobsRequestObject) (apigen.FindMissingBlobsResponseObject, error) {
	out := apigen.FindMissingBlobs200JSONResponse{Missing: []apigen.Digest{}}
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := tx.HaveBlobs(ctx, req.Body.Digests)
		have := map[string]bool{}
		for _, digest := range found {
			have[digest] = true
		}
		for _, digest := range req.Body.Digests {
			if !have[digest] {
				have[digest] = true // named twice, uploaded once
				out.Missing = append(out.Missing, digest)
			}
		}
		return err
	})
	return out, err
}
