package build

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/berth-dev/berth/runner/engine/job"
)

// fetchTimeout is for one commit, or for all branches of a server that gives out
// none by its id.
const fetchTimeout = 10 * time.Minute

var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// checkout fetches exactly the commit of a source and checks it out. It returns
// the directory. Submodules are not fetched.
func checkout(ctx context.Context, j *job.Job) (string, error) {
	s := j.Spec.Source
	if !fullCommit.MatchString(s.Commit) {
		return "", job.Refusef("", "%s: %q is not a full commit", describe(s), s.Commit)
	}
	if err := checkRepo(s.Repo); err != nil {
		return "", job.Wrongf(correct(j, "repo")+": use an https:// address", "%s: %v", describe(s), err)
	}
	j.Logf("fetching %s, commit %s", describe(s), s.Commit)
	dir := j.Work("git")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	repo, err := git.PlainInit(dir, false)
	if err != nil {
		return "", err
	}
	remote, err := repo.CreateRemote(&config.RemoteConfig{Name: git.DefaultRemoteName, URLs: []string{s.Repo}})
	if err != nil {
		return "", err
	}
	err = patiently(ctx, j, describe(s), fetchTimeout, func() error { return fetch(ctx, remote, s.Commit) })
	if err != nil {
		return "", gitFailure(ctx, j, err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return "", err
	}
	err = tree.Checkout(&git.CheckoutOptions{Hash: plumbing.NewHash(s.Commit)})
	if err != nil {
		return "", gitFailure(ctx, j, err)
	}
	return dir, nil
}

// fetch gets one commit without its history. Servers that give only what has a
// name are asked for all branches and tags instead.
func fetch(ctx context.Context, remote *git.Remote, commit string) error {
	exact := config.RefSpec(commit + ":refs/heads/berth")
	err := remote.FetchContext(ctx, &git.FetchOptions{RefSpecs: []config.RefSpec{exact}, Depth: 1, Tags: git.NoTags})
	if err == nil || ctx.Err() != nil || !notOffered(err) {
		return err
	}
	all := []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"}
	err = remote.FetchContext(ctx, &git.FetchOptions{RefSpecs: all, Tags: git.NoTags})
	if errors.Is(err, git.NoErrAlreadyUpToDate) {
		return nil
	}
	return err
}

// notOffered tells the errors of a repository that is there but does not hand
// out the commit by its id.
func notOffered(err error) bool {
	return !errors.Is(err, transport.ErrRepositoryNotFound) && !errors.Is(err, transport.ErrAuthenticationRequired) &&
		!errors.Is(err, transport.ErrAuthorizationFailed) && !errors.Is(err, transport.ErrEmptyRemoteRepository)
}

// checkRepo takes the addresses that an engine may reach without credentials.
func checkRepo(repo string) error {
	u, err := url.Parse(repo)
	if err != nil || u.Scheme == "" {
		return errors.New("its address is not a URL")
	}
	switch u.Scheme {
	case "https", "http", "file":
		return nil
	}
	return fmt.Errorf("addresses with %s:// are not supported", u.Scheme)
}

func gitFailure(ctx context.Context, j *job.Job, err error) error {
	s := j.Spec.Source
	if ctx.Err() != nil {
		return job.Failf("", "%s: fetching was cut short", describe(s))
	}
	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return job.Failf(correct(j, "repo")+orCopy(s), "%s: there is no such repository, or it is not public", describe(s))
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return job.Failf(correct(j, "repo")+orCopy(s), "%s: the repository may not be read without credentials", describe(s))
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return job.Failf("push something to it", "%s: the repository is empty", describe(s))
	case errors.Is(err, plumbing.ErrObjectNotFound), errors.Is(err, plumbing.ErrReferenceNotFound):
		return job.Failf("sync again, which resolves the branch again: its history was rewritten", "%s: commit %s is not there any more", describe(s), s.Commit)
	}
	return job.Failf(correct(j, "repo")+orCopy(s), "%s: the repository cannot be read: %s", describe(s), reason(err))
}

// withoutCredentials is an address without what stands before its @.
func withoutCredentials(repo string) string {
	u, err := url.Parse(repo)
	if err != nil {
		return "(an address that is no URL)"
	}
	u.User = nil
	return u.String()
}
