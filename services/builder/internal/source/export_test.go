package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/builder/internal/source"
)

func TestExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, err := gogit.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"README": 0o644, "mod/main.tf": 0o644, "mod/deep/run.sh": 0o755} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("main.tf", filepath.Join(dir, "mod", "link.tf")); err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.AddGlob("."); err != nil {
		t.Fatal(err)
	}
	hash, err := tree.Commit("one", &gogit.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.com", When: time.Unix(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	// What is not committed is no part of it.
	if err := os.WriteFile(filepath.Join(dir, "mod", "main.tf"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	resolver := source.NewResolver(source.Config{AllowFile: true})
	commit := source.Commit{URL: "file://" + dir, Hash: hash.String()}
	dest := filepath.Join(t.TempDir(), "dest")
	if err := resolver.Export(t.Context(), commit, "mod", dest); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err = filepath.WalkDir(dest, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Lstat(file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(dest, file)
		got[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"main.tf":     "-rw------- mod/main.tf",
		"link.tf":     "Lrwxrwxrwx mod/main.tf",
		"deep/run.sh": "-rwx------ mod/deep/run.sh",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	var refused *source.Error
	err = resolver.Export(t.Context(), commit, "nothing", t.TempDir())
	if want := `commit ` + hash.String() + ` has no directory "nothing"`; !errors.As(err, &refused) || err.Error() != want || refused.Transient {
		t.Errorf("a directory that is not there: %v, want %s", err, want)
	}
	err = resolver.Export(t.Context(), source.Commit{URL: "https://example.com/r.git", Hash: hash.String()}, ".", t.TempDir())
	if !errors.As(err, &refused) {
		t.Errorf("a repository that is not on disk: %v", err)
	}
}
