package source

import (
	"context"
	"errors"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// directory is a repository on this machine's disk, bare or not. It is read
// without git's programs, so that no hook and no configuration of it runs.
type directory struct{ repo *git.Repository }

func openDirectory(path string) (*directory, error) {
	repo, err := git.PlainOpen(path)
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, transport.ErrRepositoryNotFound
	case err != nil:
		return nil, err
	}
	return &directory{repo: repo}, nil
}

func (d *directory) ref(name string) (string, bool) {
	ref, err := d.repo.Reference(plumbing.ReferenceName(name), true)
	if err != nil {
		return "", false
	}
	// An annotated tag is an object that points to the commit.
	for hash := ref.Hash(); ; {
		tag, err := d.repo.TagObject(hash)
		if err != nil {
			return hash.String(), true
		}
		hash = tag.Target
	}
}

func (d *directory) names() []string {
	var names []string
	refs, err := d.repo.References()
	if err != nil {
		return nil
	}
	_ = refs.ForEach(func(ref *plumbing.Reference) error {
		names = append(names, ref.Name().String())
		return nil
	}) // the function never fails, and what cannot be listed is no hint
	return names
}

func (d *directory) has(_ context.Context, hash string) (bool, error) {
	_, err := d.repo.CommitObject(plumbing.NewHash(hash))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}
