package sync

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// gitTimeout is how long the repository of the folder may take to answer: what
	// it says is good to have, and nobody waits for it.
	gitTimeout = 5 * time.Second

	// What the contract allows, in characters.
	maxMessage, maxAuthor = 2000, 200
)

// Origin says where a folder comes from: the commit that it is at, with its
// author and, when no message is given, its subject. It is nil when there is
// neither a repository nor a message. A folder with changes that are in no commit
// has no message but the one given.
func Origin(ctx context.Context, folder, message string) *ctlapi.Origin {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	origin := ctlapi.Origin{Message: cut(message, maxMessage)}
	head, err := git(ctx, folder, "log", "-1", "--format=%H%n%an%n%s")
	if commit, rest, ok := strings.Cut(head, "\n"); err == nil && ok {
		author, subject, _ := strings.Cut(rest, "\n")
		changed, err := git(ctx, folder, "status", "--porcelain", "--", ".")
		origin.Commit, origin.Author, origin.Modified = commit, cut(author, maxAuthor), err != nil || changed != ""
		if message == "" && !origin.Modified {
			origin.Message = cut(subject, maxMessage)
		}
	}
	if origin == (ctlapi.Origin{}) {
		return nil
	}
	return &origin
}

// git asks the repository of a folder. It starts no program that the repository
// names, and writes nothing.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-C", folder}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(string(out), "\x00", "")), "\uFFFD"), err
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
