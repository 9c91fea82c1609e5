package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/plugin"
)

// Replayed is how a change of a recording went with another version.
type Replayed struct {
	Name   string
	Status Status
	// Why names each difference.
	Why  string
	Took time.Duration
}

// Replay has the plugin in dir make the changes of a recording again, each from what
// was there before it: it has to take the config, read what the other version left,
// say, show and give the same, and leave the same behind. Pinned files may differ,
// since no version applies what another one planned.
func Replay(ctx context.Context, dir, recording string) ([]Replayed, error) {
	s, m, tr, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	entries, err := os.ReadDir(recording)
	if err != nil {
		return nil, err
	}
	var all []Replayed
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		began := time.Now()
		r := Replayed{Name: e.Name(), Status: Kept}
		if err := replay(ctx, s, pluginWorld{manifest: m, trial: tr}, filepath.Join(recording, e.Name())); err != nil {
			r.Status, r.Why = Broken, err.Error()
		}
		r.Took = time.Since(began)
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is no recording: there are no changes in it", recording)
	}
	return all, nil
}

// replay makes one recorded change.
func replay(ctx context.Context, s Subject, w pluginWorld, at string) error {
	var c change
	raw, err := os.ReadFile(filepath.Join(at, "change.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("change.json: %w", err)
	}
	whole, problems := w.manifest.Config.Complete(c.Config, nil)
	if len(problems) > 0 {
		return fmt.Errorf("the config does not fit the plugin's schema any more: %v", problems)
	}
	w.trial = Trial{Config: whole}
	work, err := os.MkdirTemp("", "berth-replay-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	s.NewWorld = func(dir string) (World, error) {
		w.dir = dir
		return w, w.fill(filepath.Join(at, "before"))
	}
	t, err := newTrial(ctx, s, work)
	if err != nil {
		return err
	}
	plan, apply, err := t.change(Order{Config: First, Destroy: c.Destroy})
	if err != nil {
		return err
	}
	return w.compare(at, plan, apply)
}

// fill makes the world what was recorded.
func (w pluginWorld) fill(from string) error {
	files, err := recorded(from)
	if err != nil {
		return err
	}
	if err := w.make(); err != nil {
		return err
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range files {
		path := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(path, []byte(strings.ReplaceAll(text, worldName, w.dir)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// compare names every difference to what was recorded.
func (w pluginWorld) compare(at string, plan, apply *job) error {
	var errs []error
	for _, part := range []struct {
		name string
		job  *job
	}{{"plan", plan}, {"apply", apply}} {
		got := map[string]string{}
		var err error
		if part.job != nil {
			got, err = w.left(part.job)
		}
		want, readErr := recorded(filepath.Join(at, part.name))
		errs = append(errs, err, readErr, differ(part.name, want, got))
	}
	now, err := w.files()
	want, readErr := recorded(filepath.Join(at, "after"))
	return errors.Join(append(errs, err, readErr, differ("after", want, now))...)
}

func differ(part string, want, got map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		is, there := got[name]
		switch {
		case !there:
			errs = append(errs, fmt.Errorf("%s/%s is missing, it was %.200q", part, name, want[name]))
		case !same(want[name], is):
			errs = append(errs, fmt.Errorf("%s/%s is %.200q, it was %.200q", part, name, is, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[name]; !there {
			errs = append(errs, fmt.Errorf("%s/%s is new: %.200q", part, name, got[name]))
		}
	}
	return errors.Join(errs...)
}

// same compares two texts, by their meaning when both are JSON.
func same(a, b string) bool {
	var left, right any
	if a == b {
		return true
	}
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil && reflect.DeepEqual(left, right)
}

// recorded are the files of a directory by path; one that is not there has none.
func recorded(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == "." {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all[name] = string(raw)
		return err
	})
	return all, err
}

// open reads a plugin and how it is tried.
func open(dir string) (Subject, plugin.Manifest, Trial, error) {
	s, err := Plugin(dir)
	if err != nil {
		return s, plugin.Manifest{}, Trial{}, err
	}
	m, err := plugin.ReadManifest(os.DirFS(dir))
	if err != nil {
		s.close()
		return s, m, Trial{}, err
	}
	t, err := readTrial(dir, m)
	if err != nil {
		s.close()
	}
	return s, m, t, err
}
