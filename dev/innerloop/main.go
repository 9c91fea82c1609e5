// Command innerloop measures how long it takes from a save until the saved code
// runs and is ready. It starts a loop (make dev, or Tilt), writes a file of Go
// again and again whose code says which save it is, waits until the loop's output
// has those words, and then until the service is ready. It prints one line of a
// Markdown table; what the loop says goes to stderr.
//
//	innerloop -loop 'make dev' -file services/log-ingest/saved.go -ready http://127.0.0.1:8702/readyz dev/scripts/dev.sh
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var m measurement
	flag.StringVar(&m.loop, "loop", "", "`name` of the loop, for the table")
	flag.StringVar(&m.file, "file", "", "`file` to write, of the service's main package; it is deleted at the end")
	flag.StringVar(&m.ready, "ready", "", "`URL` that answers 200 when the service is ready")
	flag.IntVar(&m.times, "times", 10, "how many saves to measure")
	flag.Parse()
	if m.loop == "" || m.file == "" || m.ready == "" || m.times < 1 || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: innerloop -loop NAME -file FILE -ready URL [-times N] COMMAND [ARG]...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	took, err := m.run(ctx, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "innerloop:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println(row(m.loop, filepath.Base(filepath.Dir(m.file)), took))
}

// measurement is what to measure.
type measurement struct {
	loop, file, ready string
	times             int
}

// run starts the loop, saves, and ends the loop.
func (m measurement) run(ctx context.Context, command []string) (took []time.Duration, err error) {
	l, err := start(ctx, command)
	if err != nil {
		return nil, err
	}
	defer l.end()
	defer func() { _ = os.Remove(m.file) }()
	if err := l.until(ctx, startTimeout, answers(ctx, m.ready)); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	// Number 0 adds the file, and is not counted; the others change it.
	for n := range m.times + 1 {
		if err := l.until(ctx, saveTimeout, after(pause)); err != nil {
			return nil, err
		}
		mark := fmt.Sprintf("innerloop: save %d runs", n)
		began := time.Now()
		if err := save(m.file, mark); err != nil {
			return nil, err
		}
		if err := l.until(ctx, saveTimeout, l.says(mark)); err != nil {
			return nil, fmt.Errorf("save %d: %w", n, err)
		}
		if err := l.until(ctx, saveTimeout, answers(ctx, m.ready)); err != nil {
			return nil, fmt.Errorf("save %d: %w", n, err)
		}
		if n > 0 {
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}

// save writes Go that prints mark when the program starts.
func save(file, mark string) error {
	code := fmt.Sprintf("package main\n\nimport \"os\"\n\nfunc init() { _, _ = os.Stderr.WriteString(%q + \"\\n\") }\n", mark)
	next := file + "~" // as editors do
	if err := os.WriteFile(next, []byte(code), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}
