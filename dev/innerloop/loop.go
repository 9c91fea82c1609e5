package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// startTimeout is for the loop's own start, which may build everything.
	startTimeout = 15 * time.Minute
	// saveTimeout is for one save.
	saveTimeout = 2 * time.Minute
	// stopTimeout is for the loop's end, which stops what it runs.
	stopTimeout = time.Minute
	// pause is before each save: the loop does things for the next one.
	pause = 3 * time.Second
	// ask is how often it is looked whether a step is done.
	ask = 10 * time.Millisecond
	// askTimeout is for one answer of the service.
	askTimeout = time.Second
)

// loop is a loop that runs.
type loop struct {
	interrupt context.CancelFunc
	lines     chan string   // what it says; closed when it has ended
	said      []string      // since the last step
	ended     chan struct{} // closed when the process is gone
}

// start starts a loop. It is interrupted, as by Ctrl-C, when ctx ends, and killed
// when that takes longer than stopTimeout.
func start(ctx context.Context, command []string) (*loop, error) {
	ctx, interrupt := context.WithCancel(ctx)
	out, in := io.Pipe()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = in, in
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	l := &loop{interrupt: interrupt, lines: make(chan string), ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		interrupt()
		return nil, err
	}
	go func() {
		defer close(l.lines)
		for text := bufio.NewReader(out); ; {
			line, err := text.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(os.Stderr, line)
			l.lines <- line
		}
	}()
	go func() {
		defer close(l.ended)
		_ = cmd.Wait() // how it ended is in what it said
		_ = in.Close()
	}()
	return l, nil
}

// end interrupts the loop and returns when it is gone.
func (l *loop) end() {
	l.interrupt()
	for range l.lines { // else it could not say its last words
	}
	<-l.ended
}

// until returns when a step is done. What the loop says meanwhile is kept for it.
func (l *loop) until(ctx context.Context, limit time.Duration, done func() bool) error {
	l.said = nil
	deadline := time.After(limit)
	tick := time.NewTicker(ask)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("not done after %s", limit)
		case line, open := <-l.lines:
			if !open {
				return errors.New("the loop ended")
			}
			l.said = append(l.said, line)
		case <-tick.C:
			if done() {
				return nil
			}
		}
	}
}

// says is a step that is done when the loop has said something.
func (l *loop) says(what string) func() bool {
	return func() bool {
		for _, line := range l.said {
			if strings.Contains(line, what) {
				return true
			}
		}
		return false
	}
}

// answers is a step that is done when a URL answers 200.
func answers(ctx context.Context, url string) func() bool {
	return func() bool {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

// after is a step that is done after some time.
func after(d time.Duration) func() bool {
	began := time.Now()
	return func() bool { return time.Since(began) >= d }
}
