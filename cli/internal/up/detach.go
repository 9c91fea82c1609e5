package up

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// envDetached tells a process that it is the one in the background: it reports
// on descriptor 3 what happens, line by line, and readyWord when all is up.
const envDetached = "BERTH_UP_DETACHED"

const (
	readyWord = "\x00ready "
	errorWord = "\x00error "
)

// Detach runs this executable again with the same arguments as a process in
// the background, passes on what it says, and returns when it is ready. When
// the context ends first, the background process keeps starting.
func Detach(ctx context.Context, l Layout, args []string, say func(string)) (url string, err error) {
	if err := l.Make(); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	began := sizeOf(l.LogFile("up"))
	log, err := os.OpenFile(l.LogFile("up"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", onDisk(l.Dir, err)
	}
	defer func() { _ = log.Close() }()
	reports, theirs, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = reports.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	cmd.Env = append(os.Environ(), envDetached+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	// A session of its own: closing the terminal does not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = reports.Close() })
	defer stop()
	return follow(reports, cmd, say, written{l.LogFile("up"), began})
}

// written is what a process writes to a log, from an offset on.
type written struct {
	log  string
	from int64
}

func follow(reports io.Reader, cmd *exec.Cmd, say func(string), log written) (string, error) {
	var problem Problem
	scanner := bufio.NewScanner(reports)
	for scanner.Scan() {
		line := scanner.Text()
		if url, ok := strings.CutPrefix(line, readyWord); ok {
			return url, cmd.Process.Release()
		}
		if what, ok := strings.CutPrefix(line, errorWord); ok {
			problem.What, problem.Advice, _ = strings.Cut(what, "\x00")
			continue
		}
		say(line)
	}
	if errors.Is(scanner.Err(), os.ErrClosed) {
		return "", &Problem{What: "not waited for", Advice: "berth up --status (it keeps starting in the background, see " + log.log + ")"}
	}
	_ = cmd.Wait() // its own output says how it ended
	if problem.What == "" {
		what, remedy := lastWordsOf(log.log, log.from)
		problem.What = "the process in the background ended before it was ready: " + firstOf(what, "it wrote nothing") + "; its log: " + log.log
		problem.Advice = firstOf(remedy, "fix that, then berth up again")
	}
	return "", &problem
}

// Background is the reporting side of Detach. It is nil in the foreground.
type Background struct{ w *os.File }

// FromDetach returns the way to report to the process that detached us, if
// that is what happened.
func FromDetach() *Background {
	if os.Getenv(envDetached) == "" {
		return nil
	}
	const firstExtra = 3
	syscall.CloseOnExec(firstExtra) // the parts must not hold it open
	return &Background{w: os.NewFile(firstExtra, "reports")}
}

// Say passes a line on, as long as somebody listens.
func (b *Background) Say(line string) {
	_, _ = fmt.Fprintln(b.w, line)
}

// Ready ends the reporting.
func (b *Background) Ready(url string) {
	_, _ = fmt.Fprintln(b.w, readyWord+url)
	_ = b.w.Close()
}

// Failed passes on why it will not be ready.
func (b *Background) Failed(what, remedy string) {
	_, _ = fmt.Fprintln(b.w, errorWord+strings.ReplaceAll(what, "\n", " ")+"\x00"+remedy)
	_ = b.w.Close()
}
