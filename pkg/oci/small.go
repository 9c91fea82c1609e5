package oci

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// smallBlobBytes is how large a blob may be that is sent without asking first
// whether it is there: the question takes as long as the answer.
const smallBlobBytes = 16 << 10

// pushSmall sends a small blob in one request where the registry takes that, as
// Berth's own does (end-4b of the distribution specification). Others begin an
// upload by it, which is then finished as usual.
func pushSmall(ctx context.Context, repo *remote.Repository, desc ocispec.Descriptor, raw []byte) error {
	scheme := "https"
	if repo.PlainHTTP {
		scheme = "http"
	}
	address := url.URL{
		Scheme: scheme, Host: repo.Reference.Host(), Path: "/v2/" + repo.Reference.Repository + "/blobs/uploads/",
		RawQuery: url.Values{"digest": {desc.Digest.String()}}.Encode(),
	}
	ctx = auth.AppendRepositoryScope(ctx, repo.Reference, auth.ActionPull, auth.ActionPush)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mediaTypeBytes)
	resp, err := repo.Client.Do(req)
	if err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusCreated:
		return resp.Body.Close()
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		// Not the specification's answer of a registry that cannot do it.
		if err := resp.Body.Close(); err != nil {
			return err
		}
		return repo.Push(ctx, desc, bytes.NewReader(raw))
	}
	// oras finishes what was begun, or says what is wrong.
	begun := &remote.Repository{Client: &answered{first: resp, Client: repo.Client}, Reference: repo.Reference, PlainHTTP: repo.PlainHTTP}
	if err := begun.Push(ctx, desc, bytes.NewReader(raw)); err != nil {
		return fmt.Errorf("send at once: %w", err)
	}
	return nil
}

// answered is a client whose first request was answered before.
type answered struct {
	first *http.Response
	remote.Client
}

// Do implements [remote.Client].
func (a *answered) Do(req *http.Request) (*http.Response, error) {
	if resp := a.first; resp != nil {
		a.first = nil
		return resp, nil
	}
	return a.Client.Do(req)
}
