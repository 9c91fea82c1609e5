package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// tree is the source tree, watched. What is saved from watch on is reported, also
// when report is called later.
type tree struct {
	root    string
	watcher *fsnotify.Watcher
	fail    func(error) // takes what cannot be watched
}

// watch looks at every folder below root that may hold sources.
func watch(root string, fail func(error)) (*tree, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, tooMany(err)
	}
	t := &tree{root: root, watcher: watcher, fail: fail}
	if _, err := t.add(root); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return t, nil
}

func (t *tree) close() { _ = t.watcher.Close() }

// report sends the files that are saved, with slashes and relative to the root,
// until ctx ends or the tree is closed.
func (t *tree) report(ctx context.Context, saved chan<- string) {
	send := func(files ...string) {
		for _, file := range files {
			select {
			case saved <- file:
			case <-ctx.Done():
				return
			}
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-t.watcher.Events:
			if !open {
				return
			}
			files, err := t.noticed(event)
			if err != nil {
				t.fail(err)
			}
			send(files...)
		case err, open := <-t.watcher.Errors:
			if !open {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				send(workspaceFile) // too many to be named: all may have changed
				continue
			}
			t.fail(err)
		}
	}
}

// noticed are the files that an event is about. Those of a new folder may have
// been written before it was watched.
func (t *tree) noticed(event fsnotify.Event) ([]string, error) {
	file := t.relative(event.Name)
	if event.Op == fsnotify.Chmod || ignored(file) {
		return nil, nil
	}
	if info, err := os.Stat(event.Name); err == nil && info.IsDir() {
		if !event.Has(fsnotify.Create) {
			return nil, nil
		}
		return t.add(event.Name)
	}
	return []string{file}, nil
}

// add watches a folder and those below it, and returns the files that are there.
func (t *tree) add(folder string) (files []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone already
		case err != nil:
			return err
		case !entry.IsDir():
			if file := t.relative(path); !ignored(file) {
				files = append(files, file)
			}
			return nil
		case path != t.root && skipped(entry.Name()):
			return fs.SkipDir
		}
		if err := t.watcher.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return tooMany(err)
		}
		return nil
	})
	return files, err
}

func (t *tree) relative(path string) string {
	if file, err := filepath.Rel(t.root, path); err == nil {
		path = file
	}
	return filepath.ToSlash(path)
}

// tooMany says how to watch more.
func tooMany(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("watch the source tree: %w; on Linux, allow more with sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512", err)
	}
	return fmt.Errorf("watch the source tree: %w", err)
}
