package trees

import (
	"context"
	"time"

	"github.com/opencontainers/go-digest"
)

// maxProofs bounds what is remembered of verified artifacts: an install of hundreds of
// components has that many, and one more costs its hash.
const maxProofs = 4096

// proof is what was verified of an artifact: its blobs, as they were.
type proof map[digest.Digest]stamp

// Verify is Layout.Verify, but hashes only what it has not hashed before or what is not
// the file any more that it hashed then.
func (s *Store) Verify(ctx context.Context, artifact digest.Digest) error {
	s.mu.Lock()
	known := s.proofs[artifact]
	s.mu.Unlock()
	if known != nil && s.unchanged(known) {
		return nil
	}
	began := time.Now()
	before, complete := s.blobs(ctx, artifact) // looked at first: what changes meanwhile is another file then
	if err := s.layout.Verify(ctx, artifact); err != nil {
		s.forget(artifact)
		return err
	}
	if !complete {
		return nil
	}
	for _, blob := range before {
		if !blob.tells(began) {
			return nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.proofs) >= maxProofs {
		clear(s.proofs)
	}
	s.proofs[artifact] = before
	return nil
}

func (s *Store) forget(artifact digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proofs, artifact)
}

func (s *Store) unchanged(known proof) bool {
	for blob, was := range known {
		if is, err := s.stampOfBlob(blob); err != nil || is != was {
			return false
		}
	}
	return true
}

// blobs stamps everything that Layout.Verify hashes; complete is false when something
// of it is missing or not readable.
func (s *Store) blobs(ctx context.Context, artifact digest.Digest) (_ proof, complete bool) {
	all, err := s.layout.BlobsOf(ctx, artifact)
	if err != nil {
		return nil, false
	}
	found := proof{}
	for _, blob := range all {
		if found[blob], err = s.stampOfBlob(blob); err != nil {
			return nil, false
		}
	}
	return found, true
}

func (s *Store) stampOfBlob(blob digest.Digest) (stamp, error) {
	f, err := s.layout.Open(blob)
	if err != nil {
		return stamp{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info)
}
