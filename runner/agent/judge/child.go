package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/process"
)

// maxSaid is how much is kept of what an engine says about its end, in bytes.
const maxSaid = 64 << 10

// endTimeout is for an engine that gives no answer any more.
const endTimeout = 2 * time.Second

// child is a running engine.
type child struct {
	process *process.Process
	in, out *os.File
	said    *lastWords
	// answered is how many questions it has answered.
	answered int
}

// errRetired: it ended as it should, and gave no answer.
var errRetired = errors.New("the policy engine ended before it was asked")

// start starts an engine behind the best walls that this machine has.
func (e *Engine) start() (*child, error) {
	if err := e.Missing(); err != nil {
		return nil, err
	}
	isolation, err := e.build()
	if err != nil {
		return nil, err
	}
	var files [3][2]*os.File
	for i := range files {
		if files[i][0], files[i][1], err = os.Pipe(); err != nil {
			closeAll(files[:i]...)
			return nil, err
		}
	}
	in, out, errs := files[0], files[1], files[2]
	p, err := process.Start(process.Spec{
		Path: e.opts.Executable, Args: []string{"serve", "--memory", strconv.FormatInt(e.opts.Memory, 10)}, Dir: "/", Env: []string{},
		Stdin: in[0], Stdout: out[1], Stderr: errs[1], Isolation: isolation, Launcher: e.opts.Launcher,
	})
	if err != nil {
		closeAll(files[:]...)
		return nil, err
	}
	closeAll([2]*os.File{in[0], out[1]}, [2]*os.File{errs[1], nil})
	c := &child{process: p, in: in[1], out: out[0], said: &lastWords{}}
	c.said.read(errs[0])
	return c, nil
}

func closeAll(pairs ...[2]*os.File) {
	for _, pair := range pairs {
		for _, f := range pair {
			if f != nil {
				_ = f.Close()
			}
		}
	}
}

func (c *child) over() bool {
	select {
	case <-c.process.Done():
		return true
	default:
		return false
	}
}

// kill ends the child and waits until nothing is left of it.
func (c *child) kill() {
	c.process.Kill()
	<-c.process.Done()
	_ = c.in.Close()
	_ = c.out.Close()
	c.said.wait()
}

// ask writes a request and reads the reply. After an error the child has to be ended.
func (c *child) ask(ctx context.Context, r policy.Request) ([]byte, error) {
	type answer struct {
		raw []byte
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		if err := policy.WriteFrame(c.in, r, policy.MaxRequest); err != nil {
			answered <- answer{err: err}
			return
		}
		raw, err := policy.ReadFrame(c.out, policy.MaxReply)
		answered <- answer{raw, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, c.why(a.err)
		}
		return a.raw, nil
	case <-ctx.Done():
		c.process.Kill() // which ends the other's waiting too
		<-answered
		return nil, context.Cause(ctx)
	}
}

// why is what an engine that gave no answer ended of, as far as it says.
func (c *child) why(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) && !isBrokenPipe(err) {
		return err
	}
	select {
	case <-c.process.Done():
	case <-time.After(endTimeout): // it closed its output and stays
		c.process.Kill()
		<-c.process.Done()
	}
	c.said.wait()
	if c.process.ExitCode() == 0 {
		return errRetired
	}
	if said := c.said.first(); said != "" {
		return errors.New(said)
	}
	return fmt.Errorf("it ended with exit code %d and gave no reason", c.process.ExitCode())
}

// lastWords keeps the beginning of what an engine writes on stderr.
type lastWords struct {
	done sync.WaitGroup
	text bytes.Buffer
}

func (l *lastWords) read(from *os.File) {
	l.done.Go(func() {
		defer func() { _ = from.Close() }()
		_, _ = io.Copy(&l.text, io.LimitReader(from, maxSaid))
		_, _ = io.Copy(io.Discard, from)
	})
}

func (l *lastWords) wait() { l.done.Wait() }

// first is the line that says what happened: a crash of Go has it before the stacks.
func (l *lastWords) first() string {
	for line := range strings.Lines(l.text.String()) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
