// The plugin of component type "note": it keeps a note, a JSON file, in the
// install's directory. It uses Go's standard library alone, so it builds into one
// static executable; docs/reference/plugin-contract.md is all that it has to know.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// contract is the version of the contract that this plugin knows.
const contract = 1

// A note is what the plugin keeps, and what a plan pins.
type note struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// job is the part of job.json that matters here.
type job struct {
	Version   int    `json:"version"`
	Operation string `json:"operation"`
	Destroy   bool   `json:"destroy"`
	Resource  struct {
		Name string `json:"name"`
	} `json:"resource"`
	Plugin struct {
		Config struct {
			note
			Token string `json:"token"`
		} `json:"config"`
	} `json:"plugin"`
}

type pinned struct {
	Action string `json:"action"`
	Note   note   `json:"note"`
	Token  string `json:"token"`
}

type result struct {
	Outcome  string `json:"outcome"`
	Error    string `json:"error,omitempty"`
	NoChange bool   `json:"no_change,omitempty"`
}

// refusal is an error that means: nothing was done.
type refusal struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 || os.Args[1] != "run" {
		fmt.Fprintln(os.Stderr, "usage: plugin-go run DIR")
		os.Exit(10)
	}
	dir := os.Args[2]
	noChange, err := run(ctx, dir)
	r, code := result{Outcome: "succeeded", NoChange: noChange}, 0
	switch {
	case errors.As(err, &refusal{}):
		r, code = result{Outcome: "refused", Error: err.Error()}, 10
	case err != nil && ctx.Err() != nil:
		r, code = result{Outcome: "cancelled", Error: err.Error()}, 1
	case err != nil:
		r, code = result{Outcome: "failed", Error: err.Error()}, 1
	}
	if err := write(filepath.Join(dir, "out", "result.json"), r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, dir string) (noChange bool, err error) {
	var j job
	if err := read(filepath.Join(dir, "job.json"), &j); err != nil {
		return false, err
	}
	if j.Version != contract {
		return false, refusal{fmt.Errorf("this plugin knows version %d of the contract, not %d", contract, j.Version)}
	}
	file := filepath.Join(os.Getenv("BERTH_INSTALL_DIR"), j.Resource.Name+".json")
	if j.Operation == "plan" {
		return plan(dir, file, j)
	}
	return false, apply(ctx, dir, file, j.Destroy)
}

// plan compares the note with the one that is there.
func plan(dir, file string, j job) (noChange bool, err error) {
	if j.Plugin.Config.Token == "" {
		return false, errors.New("token is missing: give the component a token")
	}
	var now *note
	switch err := read(file, &now); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		now = &note{} // somebody has damaged it: it is written again
	}
	p := pinned{Note: j.Plugin.Config.note, Token: j.Plugin.Config.Token}
	switch {
	case j.Destroy && now != nil:
		p.Action = "delete"
	case j.Destroy:
	case now == nil:
		p.Action = "create"
	case now.Title != p.Note.Title:
		p.Action = "replace" // a note with another title is another note
	case *now != p.Note:
		p.Action = "update"
	}
	summary := map[string]any{"no_change": p.Action == ""}
	if p.Action != "" {
		summary["objects"] = []any{map[string]any{
			"address": "note " + j.Resource.Name, "action": p.Action,
			"fields": []any{map[string]any{"path": "title", "after": p.Note.Title}, map[string]any{"path": "text", "after": p.Note.Text}},
		}}
	}
	out := filepath.Join(dir, "out")
	return p.Action == "", errors.Join(
		write(filepath.Join(out, "plan.canonical.json"), map[string]any{"action": p.Action, "note": p.Note}),
		write(filepath.Join(out, "plan.summary.json"), summary),
		write(filepath.Join(out, "pinned", "note.json"), p),
	)
}

// apply does what the plan pinned, and nothing else.
func apply(ctx context.Context, dir, file string, destroy bool) error {
	var p pinned
	if err := read(filepath.Join(dir, "in", "pinned", "note.json"), &p); err != nil {
		return refusal{fmt.Errorf("what the plan pinned cannot be read: %w", err)}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if destroy {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	fmt.Println("writing note", p.Note.Title) // the log
	return errors.Join(
		write(file, p.Note),
		write(filepath.Join(dir, "out", "outputs.json"), map[string]any{
			"title":   map[string]any{"value": p.Note.Title},
			"receipt": map[string]any{"value": p.Token, "sensitive": true},
		}),
	)
}

func read(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// write replaces a file: a reader finds the old or the new one, whole.
func write(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
