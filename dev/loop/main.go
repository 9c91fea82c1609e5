// Command loop is `make dev`: Berth on this machine, rebuilt and restarted on
// save. It watches the source tree, builds the executables that a saved file
// belongs to, and has `berth up` restart the parts that run them. What does not
// compile leaves the old processes alone.
//
//	saved files ─debounce─▶ decide ─▶ build.sh ─▶ berth up --restart
//	                          ▲                   (or takes over: berth up)
//	                       go list
//
// It owns no process of Berth: these are children of `berth up`, which runs in
// the background, so when the loop is killed nothing is lost, and the next
// `make dev` goes on with what runs. Ctrl-C is `berth down`.
//
//	loop ROOT    with BERTH_DATA set
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// quiet is how long nothing may be saved before a build begins: editors write a
	// file in several steps, and format it right after.
	quiet = 80 * time.Millisecond
	// limit is how long a build is put off for that.
	limit = time.Second
)

func main() {
	if len(os.Args) != 2 || os.Getenv("BERTH_DATA") == "" {
		fmt.Fprintln(os.Stderr, "usage: BERTH_DATA=FOLDER loop ROOT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], os.Getenv("BERTH_DATA"), stop)
	if err != nil {
		fmt.Fprintln(os.Stderr, "make dev:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends and Berth is down. Before that it calls interrupted,
// after which a second Ctrl-C ends the loop at once.
func run(ctx context.Context, root, data string, interrupted func()) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	show := newScreen(os.Stdout)
	l := &loop{berth: berth{root: root, data: data}, show: show}
	watched, err := watch(root, l.complain)
	if err != nil {
		return err
	}
	defer watched.close()
	logs := openLogs(filepath.Join(data, "log"), show, l.berth.names)
	logs.start()
	defer logs.stop()
	err = l.start(ctx)
	if err == nil {
		saved := make(chan string)
		go watched.report(ctx, saved)
		l.follow(ctx, batches(ctx, saved, quiet, limit))
	} else if ctx.Err() == nil {
		return err
	}
	interrupted()
	show.line(own, "stopping Berth")
	return l.berth.down(show)
}

// loop is one run of `make dev`.
type loop struct {
	berth   berth
	show    *screen
	sources sources
	// listed delivers newer sources, and is nil while nobody lists them; unlist ends that.
	listed chan sources
	unlist context.CancelFunc
	// since are the files that were saved since sources were listed.
	since []string
	// unbuilt are executables that a save changed and that have not been built since.
	unbuilt []string
	// takeover: `berth up` itself was changed and still is the older one.
	takeover bool
	mistakes mistakes
}

// start lists the sources and brings Berth up.
func (l *loop) start(ctx context.Context) error {
	l.show.line(own, "starting Berth; its data is in "+l.berth.data)
	if err := l.berth.up(ctx); err != nil {
		return err
	}
	places, err := l.berth.places(ctx)
	if err != nil {
		return err
	}
	if l.sources, err = list(ctx, l.berth.root); err != nil {
		return err
	}
	for _, line := range places {
		l.show.line(own, line)
	}
	l.show.line(own, "save a file, and what it belongs to is rebuilt and restarted; Ctrl-C stops all of it")
	return nil
}

// follow builds and restarts, batch by batch, until ctx ends.
func (l *loop) follow(ctx context.Context, saves <-chan batch) {
	for {
		select {
		case <-ctx.Done():
			return
		case saved := <-saves:
			l.since = union(l.since, saved.files)
			l.apply(ctx, saved, decide(l.sources, saved.files))
		case newer := <-l.listed:
			before, now := decide(l.sources, l.since), decide(newer, l.since)
			saved := batch{first: time.Now(), files: l.since}
			l.sources, l.listed, l.since = newer, nil, nil
			if missed := before.lacks(now); len(missed.build) > 0 || missed.takeover {
				l.apply(ctx, saved, missed)
			}
		}
	}
}

// apply carries out what was decided about a batch.
func (l *loop) apply(ctx context.Context, saved batch, todo plan) {
	if todo.relist {
		if newer, err := list(ctx, l.berth.root); err == nil { // else the build says what is wrong
			l.sources = newer
			todo = decide(l.sources, saved.files)
		}
	}
	for _, hint := range todo.hints {
		l.show.line(own, hint)
	}
	l.unbuilt = union(l.unbuilt, todo.build)
	l.takeover = l.takeover || todo.takeover
	if len(l.unbuilt) == 0 && !l.takeover {
		return
	}
	began := time.Now()
	out, err := build(ctx, l.berth.root, l.unbuilt)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		for _, line := range l.mistakes.tell(out, err) {
			l.show.line(own, line)
		}
		return
	}
	l.mistakes = mistakes{}
	built := time.Since(began)
	l.unbuilt = nil
	parts, err := l.restart(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		l.complain(err)
	default:
		l.show.line(own, outcome(todo.files, parts, built, time.Since(saved.first)))
	}
	l.listAgain(ctx)
}

// restart has what was built run.
func (l *loop) restart(ctx context.Context) ([]string, error) {
	if !l.takeover {
		parts, err := l.berth.restart(ctx)
		if err == nil {
			return parts, nil
		}
		if now, asked := l.berth.status(ctx); asked != nil || now.PID != 0 {
			return nil, err
		}
	} // else, or when somebody ended it, there will be a new supervisor
	if err := l.berth.takeOver(ctx); err != nil {
		return nil, err
	}
	l.takeover = false
	return []string{"the supervisor", "the parts that changed"}, nil
}

// listAgain looks for imports that came and went, while nobody waits for it.
func (l *loop) listAgain(ctx context.Context) {
	if l.unlist != nil {
		l.unlist() // what it would say is not the newest
	}
	ctx, l.unlist = context.WithCancel(ctx)
	listed := make(chan sources, 1)
	l.listed = listed
	go func() {
		if newer, err := list(ctx, l.berth.root); err == nil { // else the next one says it
			listed <- newer
		}
	}()
}

func (l *loop) complain(err error) { l.show.line(own, "! "+err.Error()) }
