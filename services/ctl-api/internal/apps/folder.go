package apps

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
)

// maxFaults is how many diagnostics one answer carries.
const maxFaults = 200

// readFolder opens an uploaded bundle and checks it with the code that the
// command line checks with. The second result are the warnings.
func readFolder(ctx context.Context, tx *database.Tx, req SyncRequest) (*appconfig.App, []place.Diagnostic, error) {
	packs, err := readPacks(ctx, tx, req.BundleDigest)
	if err != nil {
		return nil, nil, err
	}
	folder, err := bundle.Open(packs...)
	if err != nil {
		return nil, nil, invalidBundle(err)
	}
	app, diagnostics := check.Folder(folder, appconfig.LoadOptions{SkipSources: true, AllowInvalidPolicies: req.AllowPolicies})
	if place.HasErrors(diagnostics) {
		return nil, nil, invalidFolder(diagnostics)
	}
	return app, diagnostics, nil
}

// readPacks reads what the index of a bundle names, in its order.
func readPacks(ctx context.Context, tx *database.Tx, bundleDigest string) ([][]byte, error) {
	index, err := tx.ReadBlob(ctx, bundleDigest)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, missingBlob("the index of the app folder's bundle", "/bundle_digest", bundleDigest)
	}
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	digests, err := bundle.PacksOf(index)
	if err != nil {
		return nil, invalidBundle(err)
	}
	rows, err := tx.ReadBlobs(ctx, digests)
	if err != nil {
		return nil, fmt.Errorf("read packs: %w", err)
	}
	found := make(map[string][]byte, len(rows))
	for _, row := range rows {
		found[row.Digest] = row.Body
	}
	packs := make([][]byte, 0, len(digests))
	for _, digest := range digests {
		pack, ok := found[digest]
		if !ok {
			return nil, missingBlob("a pack of the app folder's bundle", "/bundle_digest", digest)
		}
		packs = append(packs, pack)
	}
	return packs, nil
}

func invalidBundle(err error) error {
	return fault.With(fault.Newf(fault.ErrInvalid, "%w", err), fault.Code("bundle_invalid"), fault.Remedy("sync with the `berth` from this control plane's release"))
}

// invalidFolder tells all errors of a folder at once.
func invalidFolder(diagnostics []place.Diagnostic) error {
	var fields []fault.FieldError
	count := 0
	for _, d := range diagnostics {
		if d.Severity != place.Error {
			continue
		}
		if count++; len(fields) == maxFaults {
			continue
		}
		message := d.Message
		if d.Remedy != "" {
			message += ": " + d.Remedy
		}
		fields = append(fields, fault.FieldError{File: d.File, Line: d.Line, Column: d.Column, Code: string(d.Code), Detail: message})
	}
	noun := "errors"
	if count == 1 {
		noun = "error"
	}
	return fault.With(fault.Newf(fault.ErrInvalid, "the app folder has %d %s", count, noun),
		fault.Code("config_invalid"), fault.Fields(fields...), fault.Remedy("fix them and sync again"))
}

func missingBlob(what, pointer, digest string) error {
	return fault.With(fault.Newf(fault.ErrInvalid, "%s has not been uploaded", what), fault.Code("blob_missing"),
		fault.Fields(fault.FieldError{Pointer: pointer, Code: "blob_missing", Detail: digest + " has not been uploaded"}),
		fault.Remedy("upload it first: PUT /blobs/%s", digest))
}
