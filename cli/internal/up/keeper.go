package up

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"
)

const (
	firstDelay = 100 * time.Millisecond // before the first restart
	maxDelay   = 5 * time.Second        // between restarts in a crash loop

	// steady is how long a part must have run for its death to be a new story.
	steady = 30 * time.Second

	// crashLoop is how many quick deaths in a row are called that.
	crashLoop = 4

	readyInterval = 50 * time.Millisecond // between questions while a part starts
)

// nextDelay decides how long to wait before a restart, from how many quick
// deaths there were in a row and how long the process lived this time.
func nextDelay(quickDeaths int, lived time.Duration) (delay time.Duration, deaths int) {
	if lived >= steady {
		quickDeaths = 0
	}
	delay = firstDelay
	for range quickDeaths {
		delay = min(2*delay, maxDelay)
	}
	return delay, quickDeaths + 1
}

// keeper keeps one part running until it is stopped.
type keeper struct {
	part   Part
	ledger *ledger
	say    func(string) // for people: one line

	cancel context.CancelFunc
	done   chan struct{}
	again  chan chan struct{} // asks for a new process; what is sent is closed once the old one is gone

	mu     sync.Mutex
	status PartStatus
	began  int64 // size of the log when the process was started
}

// PartStatus is what is known of a part without asking it.
type PartStatus struct {
	Name     string `json:"name"`
	PID      int    `json:"pid,omitempty"` // 0 while it does not run
	Adopted  bool   `json:"adopted,omitempty"`
	Restarts int    `json:"restarts"`
	// Given up says that it ended permanently.
	GivenUp bool `json:"given_up,omitempty"`
	// Looping says that it dies soon after each start.
	Looping bool   `json:"looping,omitempty"`
	Last    string `json:"last,omitempty"` // how it ended last
	// LastLine is the error that its log ended with then or, without one, its last line.
	LastLine string `json:"last_line,omitempty"`
	Log      string `json:"log"`
	// Path is the executable, and Copies what it uses that the supervisor copied to
	// where other users can run it: to where, from where.
	Path   string            `json:"path,omitempty"`
	Copies map[string]string `json:"copies,omitempty"`
}

// keep starts the part, or takes over the process that an earlier supervisor
// left, and returns at once.
func keep(part Part, l *ledger, say func(string)) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{part: part, ledger: l, say: say, cancel: cancel, done: make(chan struct{}), again: make(chan chan struct{})}
	k.status = PartStatus{Name: part.Name, Log: part.Log, Path: part.Path, Copies: part.Copies}
	go func() {
		defer close(k.done)
		k.run(ctx)
	}()
	return k
}

// stop ends the process and returns when it is gone.
func (k *keeper) stop() {
	k.cancel()
	<-k.done
}

// restart ends the process, starts the part again at once, and returns when the
// old process is gone. It tells whether there will be a new one: not when the part
// was stopped or ended permanently, or when ctx ends first.
func (k *keeper) restart(ctx context.Context) bool {
	gone := make(chan struct{})
	select {
	case k.again <- gone:
		<-gone
		return true
	case <-k.done:
	case <-ctx.Done():
	}
	return false
}

// Status returns a copy.
func (k *keeper) Status() PartStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

func (k *keeper) set(fn func(*PartStatus)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(&k.status)
}

func (k *keeper) run(ctx context.Context) {
	deaths := 0
	for ctx.Err() == nil {
		began := time.Now()
		why, code := k.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if code == restartedCode {
			deaths = 0
			continue
		}
		if slices.Contains(k.part.Final, code) {
			line, _ := k.lastWords()
			k.set(func(s *PartStatus) { s.PID, s.Adopted, s.Last, s.LastLine, s.GivenUp = 0, false, why, line, true })
			k.say(fmt.Sprintf("! %s ended for good (%s): %s", k.part.Name, why, firstOf(line, "see "+k.part.Log)))
			return
		}
		var delay time.Duration
		delay, deaths = nextDelay(deaths, time.Since(began))
		line, _ := k.lastWords()
		k.set(func(s *PartStatus) {
			s.PID, s.Adopted, s.Last, s.LastLine, s.Looping = 0, false, why, line, deaths >= crashLoop
			s.Restarts++
		})
		switch deaths {
		case 1:
			k.say(fmt.Sprintf("! %s ended (%s); starting it again", k.part.Name, why))
		case crashLoop:
			k.say(fmt.Sprintf("! %s keeps ending (%s): %s; trying on, see %s", k.part.Name, why, firstOf(line, "its log is empty"), k.part.Log))
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		case gone := <-k.again:
			deaths = 0
			k.set(func(s *PartStatus) { s.Looping = false })
			close(gone)
		}
	}
}

// once runs the part one time and says how it ended. When the context ends, or a
// restart is asked for, it ends the process first.
func (k *keeper) once(ctx context.Context) (why string, code int) {
	process, ended, err := k.adoptOrStart()
	if err != nil {
		return err.Error(), unknownCode
	}
	settled := time.AfterFunc(steady, func() { k.set(func(s *PartStatus) { s.Looping = false }) })
	defer settled.Stop()
	var how end
	var gone chan struct{}
	select {
	case how = <-ended:
	case <-ctx.Done():
		how = k.end(process, ended)
	case gone = <-k.again:
		how = k.end(process, ended)
	}
	// Written down after the fact: between the two, the start time tells.
	if err := k.ledger.change(func(s *State) { delete(s.Parts, k.part.Name) }); err != nil {
		k.say("! " + err.Error())
	}
	if gone != nil {
		k.set(func(s *PartStatus) { s.PID, s.Adopted, s.Last, s.Looping = 0, false, how.why, false })
		close(gone)
		return how.why, restartedCode
	}
	return how.why, how.code
}

// end stops the process and returns how it ended.
func (k *keeper) end(process Process, ended <-chan end) end {
	if process.end(k.part.Polite, k.part.Grace) {
		k.say(fmt.Sprintf("! %s (pid %d) did not stop within %s and was killed", k.part.Name, process.PID, k.part.Grace))
	}
	return <-ended
}

// An end is how a process ended.
type end struct {
	why  string
	code int // exit code, or unknownCode
}

const (
	// unknownCode stands for signals, and for processes that were not our children.
	unknownCode = -1
	// restartedCode is that of a process which restart ended.
	restartedCode = -2
)

// adoptOrStart returns the process and a channel that says how it ended.
func (k *keeper) adoptOrStart() (Process, <-chan end, error) {
	ended := make(chan end, 1)
	digest := k.part.digest()
	if left, ok := k.ledger.read().Parts[k.part.Name]; ok && left.Running() && left.Digest == digest {
		k.set(func(s *PartStatus) { s.PID, s.Adopted = left.PID, true })
		go func() {
			_ = left.wait(context.Background()) // only a missing process ends it
			ended <- end{"ended while nobody was its parent", unknownCode}
		}()
		return left.Process, ended, nil
	}
	began := sizeOf(k.part.Log)
	cmd, err := k.part.start()
	if err != nil {
		return Process{}, nil, err
	}
	k.mu.Lock()
	k.began = began
	k.mu.Unlock()
	process, err := identify(cmd.Process.Pid)
	if err == nil {
		err = k.ledger.change(func(s *State) {
			s.Parts[k.part.Name] = PartRecord{Process: process, Order: k.part.Order, Digest: digest}
		})
	}
	go func() { ended <- howEnded(cmd.Wait()) }()
	if err != nil {
		// Not written down, so nobody would find it: it may not run.
		_ = cmd.Process.Kill()
		return Process{}, nil, fmt.Errorf("%s: %w", (<-ended).why, err)
	}
	k.set(func(s *PartStatus) { s.PID, s.Adopted = process.PID, false })
	return process, ended, nil
}

func howEnded(err error) end {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return end{"exit status 0", 0}
	case errors.As(err, &exit):
		return end{exit.Error(), exit.ExitCode()}
	}
	return end{err.Error(), unknownCode}
}

// waitReady returns when the part can be used, or why it will not be soon.
func (k *keeper) waitReady(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := k.part.Ready(ctx)
		if err == nil && k.Status().PID != 0 {
			return nil
		}
		if s := k.Status(); s.Looping || s.GivenUp {
			return k.doesNotStart(nil, "does not start (%s)", s.Last)
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return k.doesNotStart(err, "is not ready after %s (%v)", within, err)
		case <-tick.C:
		}
	}
}

// doesNotStart is the error about a part that cannot be used: with what its log
// says about that, and where the log is.
func (k *keeper) doesNotStart(cause error, how string, args ...any) error {
	text := k.part.Name + " " + fmt.Sprintf(how, args...)
	what, remedy := k.lastWords()
	if what == "" {
		text += "; its log is empty: " + k.part.Log
	} else {
		text += ": " + what + "; its log: " + k.part.Log
	}
	return problem(cause, firstOf(remedy, "fix that, then berth up again"), "%s", text)
}

// lastWords are why the process that runs, or ran last, ended.
func (k *keeper) lastWords() (what, remedy string) {
	k.mu.Lock()
	began := k.began
	k.mu.Unlock()
	what, remedy = lastWordsOf(k.part.Log, began)
	if k.part.Quote != nil {
		what, remedy = k.part.Quote(what), k.part.Quote(remedy)
	}
	return what, remedy
}
