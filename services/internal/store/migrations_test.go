package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

// sumFile lists each migration with its SHA-256, as sha256sum writes it, in the
// order in which they landed.
const sumFile = "migrations.sum"

// A migration that has landed is in somebody's database: it never changes, and
// what it lacks is a new one. The list only grows; -update adds what is new and
// changes no line. It works in any clone; the next test needs history.
func TestMigrationsAreAppendOnly(t *testing.T) {
	t.Parallel()
	list, order := readSums(t)
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var highest int64
	for _, name := range order {
		if !slices.Contains(files, "migrations/"+name) {
			t.Errorf("%s is gone: a migration that has landed stays", name)
		}
		highest = max(highest, numberOf(t, name))
	}
	var added strings.Builder
	for _, file := range files { // sorted
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		switch got := hex.EncodeToString(sum[:]); {
		case list[name] == got:
		case list[name] != "":
			t.Errorf("%s was changed after it landed: put it back, and make a new migration of the change", name)
		case numberOf(t, name) <= highest:
			t.Errorf("%s comes after %05d, which has landed: give it a higher number, since databases that have that one would get it out of order", name, highest)
		default:
			fmt.Fprintf(&added, "%s  %s\n", got, name)
		}
	}
	switch {
	case added.Len() == 0:
	case !*update:
		t.Errorf("%s lacks new migrations; run the test with -update, which adds:\n%s", sumFile, &added)
	case !t.Failed():
		old, err := os.ReadFile(sumFile)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(sumFile, append(old, added.String()...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A change of a migration could change its line in the list, too. Where the
// clone has the history, the files are compared with what has landed: the last
// release, and the point where this branch left main.
func TestLandedMigrationsAreAsTheyLanded(t *testing.T) {
	t.Parallel()
	landed := landedCommits(t)
	if len(landed) == 0 {
		t.Skip("neither a release nor main is in this clone; the list above is what there is to compare with")
	}
	for _, commit := range landed {
		names, err := git(t.Context(), "ls-tree", "--name-only", commit, "migrations/")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range strings.Fields(names) {
			want, err := git(t.Context(), "show", commit+":./"+file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != want {
				t.Errorf("%s is not what landed with %s (%v): put it back, and make a new migration of the change", file, commit, err)
			}
		}
		before, err := git(t.Context(), "show", commit+":./"+sumFile)
		if err != nil {
			continue // of before there was a list
		}
		now, err := os.ReadFile(sumFile)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(before) {
			if !strings.Contains(string(now), line) {
				t.Errorf("%s lost a line that landed with %s: %s", sumFile, commit, line)
			}
		}
	}
}

// landedCommits are the last release, and the point where the working tree left
// main; on main itself, the commit before.
func landedCommits(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	if tag, err := git(t.Context(), "describe", "--tags", "--abbrev=0", "--match", "v*"); err == nil {
		found[strings.TrimSpace(tag)] = true
	}
	head, err := git(t.Context(), "rev-parse", "HEAD")
	if err != nil {
		return nil // no clone at all
	}
	for _, main := range []string{"origin/main", "main"} {
		tip, err := git(t.Context(), "rev-parse", "--verify", "--quiet", main)
		if err != nil {
			continue
		}
		args := []string{"merge-base", "HEAD", main}
		if tip == head { // on main itself
			args = []string{"rev-parse", "--verify", "--quiet", "HEAD^1"}
		}
		base, err := git(t.Context(), args...)
		if err != nil {
			continue // not in a shallow clone
		}
		found[strings.TrimSpace(base)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return string(out), err
}

func readSums(t *testing.T) (sums map[string]string, order []string) {
	t.Helper()
	text, err := os.ReadFile(sumFile)
	if err != nil && (!errors.Is(err, os.ErrNotExist) || !*update) {
		t.Fatal(err)
	}
	sums = map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || sums[name] != "" {
			t.Fatalf("%s: %q is no line of its own", sumFile, line)
		}
		sums[name] = sum
		order = append(order, name)
	}
	return sums, order
}

func numberOf(t *testing.T, name string) int64 {
	t.Helper()
	number, err := goose.NumericComponent(name)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
