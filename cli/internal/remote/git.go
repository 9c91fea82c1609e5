package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

const (
	// gitTimeout is for one repository: one commit is fetched and, where the
	// server can do that, none of its files but those that are asked for.
	gitTimeout = 30 * time.Second
	// fileTimeout is for one file of a repository, which may be fetched then.
	fileTimeout = 10 * time.Second
	// killDelay is how long pipes may stay open after git was killed.
	killDelay = 2 * time.Second
	// maxClone bounds what one repository may take on disk, in bytes, looked at
	// each watchInterval.
	maxClone      = 512 << 20
	watchInterval = 200 * time.Millisecond
	// fetchedRef is what the commit is called on this side.
	fetchedRef = "refs/berth/fetched"
)

var (
	errTimeout = errors.New("took too long")
	errHuge    = errors.New("is too large")
)

type cloneKey struct{ repo, ref string }

// clone is one commit of a repository, fetched by the first caller.
type clone struct {
	once sync.Once
	repo string
	dir  string
	err  error
	// reading lets one git at a time read files: each may fetch what is missing.
	reading sync.Mutex
}

func (f *Fetcher) fromGit(ctx context.Context, a fetch.Address) ([]byte, error) {
	c, err := f.clone(cloneKey{a.URL, a.Ref})
	if err != nil {
		return nil, err
	}
	c.once.Do(func() { c.err = c.fetch(ctx, a) })
	if c.err != nil {
		return nil, c.err
	}
	return c.read(ctx, a.Path)
}

// clone finds or makes the place of a repository.
func (f *Fetcher) clone(key cloneKey) (*clone, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.clones[key]; ok {
		return c, nil
	}
	if f.dir == "" {
		dir, err := os.MkdirTemp("", "berth-fetch-")
		if err != nil {
			return nil, err
		}
		f.dir = dir
	}
	c := &clone{repo: key.repo, dir: filepath.Join(f.dir, strconv.Itoa(len(f.clones)))}
	f.clones[key] = c
	return c, nil
}

// fetch gets one commit without its history into a bare repository of its own.
func (c *clone) fetch(ctx context.Context, a fetch.Address) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, errTimeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watchSize(ctx, c.dir, stop)
	}()
	defer func() {
		stop(nil)
		<-watched
	}()
	ref := a.Ref
	if ref == "" {
		ref = "HEAD"
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--template=", c.dir},
		{"-C", c.dir, "config", "remote.origin.url", a.URL},
		{"-C", c.dir, "config", "remote.origin.promisor", "true"},
		{"-C", c.dir, "config", "remote.origin.partialclonefilter", "blob:none"},
		{"-C", c.dir, "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "--recurse-submodules=no", "--", "origin", "+" + ref + ":" + fetchedRef},
	} {
		cmd := command(ctx, a.URL, args...)
		said, err := cmd.CombinedOutput()
		if err != nil {
			return c.failure(ctx, err, string(said), gitTimeout)
		}
	}
	return nil
}

// watchSize ends a fetch that fills the disk.
func watchSize(ctx context.Context, dir string, stop context.CancelCauseFunc) {
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		total := int64(0)
		_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // git moves files while they are counted
			}
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
			return nil
		})
		if total > maxClone {
			stop(errHuge)
			return
		}
	}
}

// read gets one file of the commit. git follows symlinks by what they say, and
// inside of the repository only: nothing is ever checked out.
func (c *clone) read(ctx context.Context, file string) ([]byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, fileTimeout, errTimeout)
	defer cancel()
	cmd := command(ctx, c.repo, "-C", c.dir, "cat-file", "--batch", "--follow-symlinks")
	cmd.Stdin = strings.NewReader(fetchedRef + ":" + file + "\n")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, c.failure(ctx, err, "", fileTimeout)
	}
	contents, readErr := readObject(out)
	if known, ok := errors.AsType[*failure](readErr); ok {
		cancel() // the rest of it is not wanted
		_ = cmd.Wait()
		return nil, known
	}
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		return nil, c.failure(ctx, err, said.String(), fileTimeout)
	}
	return contents, nil
}

// readObject reads an answer of cat-file: "ID TYPE SIZE" and the contents, or
// what is wrong.
func readObject(out io.Reader) ([]byte, error) {
	in := bufio.NewReader(out)
	header, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(header)
	switch {
	case len(words) == 2 && words[0] == "symlink":
		return nil, failf("name the file itself", "is a symlink that points outside of the repository")
	case len(words) == 2 && slices.Contains([]string{"dangling", "loop"}, words[0]):
		return nil, failf("name the file itself", "is a symlink to nothing")
	case len(words) == 2 && words[0] == "notdir", strings.HasSuffix(header, " missing\n"):
		return nil, failf("check the path and the ref", "is not a file of the repository")
	case len(words) == 3 && words[1] == "tree":
		return nil, failf("name a file in it", "is a directory of the repository")
	case len(words) != 3 || words[1] != "blob":
		return nil, failf("name a file", "is not a file of the repository")
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return nil, err
	}
	if size > fetch.MaxBytes {
		return nil, errTooLarge
	}
	contents := make([]byte, size)
	if _, err := io.ReadFull(in, contents); err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, in) // the newline behind it
	return contents, err
}

// command makes a git that asks nobody, runs no hook, and reaches only what an
// address may name. The user's own settings apply too: proxies, keys and
// helpers that know credentials.
func command(ctx context.Context, repo string, args ...string) *exec.Cmd {
	settings := []string{
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "credential.interactive=false",
	}
	cmd := exec.CommandContext(ctx, "git", append(settings, args...)...)
	cmd.Env = environment(os.Environ(), repo)
	// In a session of its own it has no terminal to ask on, and is ended with all
	// that it started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	return cmd
}

// kept are what the names of those variables of git begin with that may stay:
// settings, and how to reach a server. The others would name another repository,
// or write what is sent into the output.
var kept = []string{"GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_EXEC_PATH"}

func environment(of []string, repo string) []string {
	var env []string
	for _, entry := range of {
		if strings.HasPrefix(entry, "GIT_") && !slices.ContainsFunc(kept, func(prefix string) bool { return strings.HasPrefix(entry, prefix) }) {
			continue
		}
		env = append(env, entry)
	}
	// The user may have told git to take a mirror (insteadOf), but a server cannot
	// send it from https to http.
	protocols := "https:ssh:file"
	if strings.HasPrefix(repo, "http:") {
		protocols += ":http"
	}
	return append(env, "GIT_ALLOW_PROTOCOL="+protocols, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
}

// failure says in our words what git means, or what it said last.
func (c *clone) failure(ctx context.Context, err error, said string, limit time.Duration) error {
	fromCopy := "or take it from a copy of the repository: berth sync --source-map " + fetch.WithoutCredentials(c.repo) + "=FOLDER"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return failf("install git", "needs git, which is not on PATH")
	case errors.Is(context.Cause(ctx), errHuge):
		return failf("put the file into the folder", "is in a repository whose commit is larger than %d MiB", maxClone>>20)
	case errors.Is(context.Cause(ctx), errTimeout):
		return failf("try again, "+fromCopy, "did not arrive within %s", limit)
	case ctx.Err() != nil:
		return errors.New("is not fetched: it was cut short")
	}
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(said, text) })
	}
	switch {
	case has("couldn't find remote ref", "not our ref", "unadvertised object"):
		return failf("check ref: a branch, a tag or a whole commit id", "names a ref that the repository does not have")
	case has("could not read Username", "could not read Password", "Authentication failed", "Permission denied", "terminal prompts disabled"):
		return failf("give git its credentials (a helper for https, an agent for ssh), "+fromCopy, "needs credentials, and git has none that work")
	case has("Host key verification failed"):
		return failf("connect to the host once with ssh and check its key", "is on a host whose key ssh does not know")
	case has("does not appear to be a git repository", "not found", "does not exist", "Repository not found"):
		return failf("check the repository's address, "+fromCopy, "is not a repository")
	case has("Could not resolve host", "Connection refused", "Failed to connect", "Couldn't connect", "Network is unreachable", "No route to host"):
		return failf("check the address and this machine's network, "+fromCopy, "cannot be reached: git says %s", lastLine(said, err))
	case has("redirect"):
		return failf("name the repository's own address", "redirects to another address")
	}
	return failf("see what git ls-remote says of this repository, "+fromCopy, "cannot be fetched: git says %s", lastLine(said, err))
}

// lastLine is what git said of the reason.
func lastLine(said string, err error) string {
	reason := fmt.Sprint(err)
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "fatal: "); ok {
			reason = text
		}
	}
	return strconv.Quote(reason)
}
