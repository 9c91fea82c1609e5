package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
)

// A recording is a directory with one directory for each change that a version of a
// plugin made: what was there before and after, the config, and what its plan and its
// apply left. Another version has to make the same of it (see Replay).
//
//	01-create/change.json        what was wanted
//	          before/ after/     the install's directory and the state
//	          plan/ apply/       what the jobs left, without pinned files
//
// Secrets of the config are replaced everywhere by texts of the same length, and
// directories of this machine by names.

// change is change.json.
type change struct {
	Destroy bool           `json:"destroy,omitempty"`
	Config  map[string]any `json:"config"`
}

// said is what is compared of a result.
type said struct {
	Outcome  jobspec.Outcome `json:"outcome"`
	NoChange bool            `json:"no_change,omitempty"`
}

// story is what is recorded: the life of a component.
var story = []struct {
	name    string
	config  Config
	destroy bool
}{
	{"create", First, false},
	{"nothing", First, false},
	{"update", Updated, false},
	{"replace", Replaced, false},
	{"destroy", Replaced, true},
	{"destroy-again", Replaced, true},
}

// Record runs the plugin in dir through the life of a component with the configs of
// its conformance.json, and writes the recording to the directory to, which it makes.
// It returns the names of the changes. Only what is in the install's directory and in
// the state can be recorded: a plugin that says otherwise (by look in
// conformance.json) is an error.
func Record(ctx context.Context, dir, to string) ([]string, error) {
	s, m, tr, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if tr.Look != "" {
		return nil, errors.New("what this plugin makes is not in the install's directory or its state (conformance.json has a look): its jobs cannot be recorded")
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return nil, fmt.Errorf("the recording goes to a new directory: %w", err)
	}
	work, err := os.MkdirTemp("", "berth-record-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	t, err := newTrial(ctx, s, work)
	if err != nil {
		return nil, err
	}
	w, ok := t.world.(pluginWorld)
	if !ok {
		return nil, errors.New("not the world of a plugin")
	}
	hide := hiding(m, tr)
	var names []string
	for _, chapter := range story {
		c := change{Destroy: chapter.destroy, Config: w.config(chapter.config)}
		if c.Config == nil {
			continue // the plugin never replaces, or never updates
		}
		name := fmt.Sprintf("%02d-%s", len(names)+1, chapter.name)
		at := recorder{dir: filepath.Join(to, name), world: w, hide: hide}
		if err := at.tape(t, c, Order{Config: chapter.config, Destroy: chapter.destroy}); err != nil {
			return names, fmt.Errorf("%s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// recorder writes one change of a recording.
type recorder struct {
	dir   string
	world pluginWorld
	hide  *strings.Replacer
}

func (r recorder) tape(t *trial, c change, o Order) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(r.write("change.json", raw), r.copyWorld("before")); err != nil {
		return err
	}
	plan, apply, err := t.change(o)
	if err != nil {
		return err
	}
	left, err := r.world.left(plan)
	if err != nil {
		return err
	}
	for name, text := range left {
		if err := r.write("plan/"+name, []byte(text)); err != nil {
			return err
		}
	}
	if apply != nil {
		if left, err = r.world.left(apply); err != nil {
			return err
		}
		for name, text := range left {
			if err := r.write("apply/"+name, []byte(text)); err != nil {
				return err
			}
		}
	}
	return r.copyWorld("after")
}

func (r recorder) write(name string, raw []byte) error {
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(r.hide.Replace(string(raw))), 0o644)
}

// copyWorld records what is there now.
func (r recorder) copyWorld(as string) error {
	now, err := r.world.files()
	if err != nil {
		return err
	}
	for name, text := range now {
		if err := r.write(as+"/"+name, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// change plans an order, and applies it when there is something to do.
func (t *trial) change(o Order) (plan, apply *job, err error) {
	o.Operation = jobspec.OperationPlan
	if plan, err = t.must(a{Order: o}); err != nil {
		return nil, nil, err
	}
	if none, err := plan.noChange(); err != nil || none {
		return plan, nil, err
	}
	o.Operation = jobspec.OperationApply
	apply, err = t.must(a{Order: o, plan: plan})
	return plan, apply, err
}

// config is the config that a plugin is tried with under a name, nil for none.
func (w pluginWorld) config(c Config) map[string]any {
	return map[Config]map[string]any{First: w.trial.Config, Updated: w.trial.Update, Replaced: w.trial.Replace}[c]
}

// files are all files of the install's directory ("install/…") and the state
// ("state/…").
func (w pluginWorld) files() (map[string]string, error) {
	all := map[string]string{}
	for prefix, dir := range map[string]string{"install/": w.install(), "state/": w.state()} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			raw, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path) // it is below dir
			all[prefix+filepath.ToSlash(rel)] = strings.ReplaceAll(string(raw), w.dir, worldName)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Names that stand for directories of the machine that recorded.
const (
	worldName = "@WORLD@"
	jobName   = "@JOB@"
)

// left are the files of a job that are compared: what it says, shows and gives.
func (w pluginWorld) left(j *job) (map[string]string, error) {
	raw, err := json.Marshal(said{Outcome: j.result.Outcome, NoChange: j.result.NoChange})
	if err != nil {
		return nil, err
	}
	all := map[string]string{"result.json": string(raw)}
	for _, name := range []string{"plan.canonical.json", "plan.summary.json", "outputs.json"} {
		raw, err := os.ReadFile(filepath.Join(j.dir, "out", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = strings.NewReplacer(j.dir, jobName, w.dir, worldName).Replace(string(raw))
	}
	return all, nil
}

// hiding replaces the secrets of a trial's configs, as they are and as JSON writes
// them.
func hiding(m plugin.Manifest, t Trial) *strings.Replacer {
	secrets := []string{t.Secret}
	for _, config := range []map[string]any{t.Config, t.Update, t.Replace} {
		for _, name := range m.Config.Secrets() {
			if text, ok := config[name].(string); ok {
				secrets = append(secrets, text)
			}
		}
	}
	var pairs []string
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		const word = "redacted"
		instead := strings.Repeat(word, len(secret)/len(word)+1)[:len(secret)]
		quoted, _ := json.Marshal(secret) // text is always possible
		pairs = append(pairs, secret, instead, string(quoted[1:len(quoted)-1]), instead)
	}
	return strings.NewReplacer(pairs...)
}
