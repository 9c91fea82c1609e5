package main

import (
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/up"
)

// Berth in another data folder takes the context over, and says so where the
// caller listens: berth up --detach works in a process that nobody sees.
func TestUpSaysThatTheContextMoved(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	c := &cli{&command.CLI{Streams: command.Streams{Out: io.Discard, Err: io.Discard}, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}}
	var said []string
	for range 2 {
		layout, err := up.LayoutAt(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c.upReady(layout, "http://127.0.0.1:8700", func(line string) {
			if !strings.Contains(line, "berth ui logs your browser in") {
				said = append(said, line)
			}
		})
	}
	if len(said) != 1 || !strings.Contains(said[0], `the context "local" pointed to http://127.0.0.1:8700`) {
		t.Errorf("two data folders, one after the other, and it said: %q", said)
	}
}
