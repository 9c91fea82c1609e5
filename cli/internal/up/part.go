package up

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Part is a process that is kept running.
type Part struct {
	Name string   // ctl-api; also the name of its log
	Path string   // of the executable
	Args []string // without the name
	Env  []string // all of it, sorted: nothing else is passed on
	Dir  string   // working directory
	Log  string   // file that stdout and stderr are appended to
	// Copies are executables that it uses and the supervisor copied: to where, from
	// where.
	Copies map[string]string
	// Starts are executables that it runs for as long as it runs itself: when one of
	// them is replaced, the part must start again.
	Starts []string
	// Quote takes secrets out of what errors quote of the log; nil leaves it as it is.
	Quote func(string) string
	// User is whom it runs as; nil for the supervisor's user.
	User *syscall.Credential
	// Polite is the signal that asks it to stop, Grace how long it then has.
	Polite syscall.Signal
	Grace  time.Duration
	// Ready answers nil when it can be used. It must return soon.
	Ready func(context.Context) error
	// Final are the exit codes with which it says that it is not wanted any
	// more: it is not started again.
	Final []int
	// Order is where it stands in the start; later ones are stopped first.
	Order int
}

// digest identifies what is run. A process of the same digest may be taken
// over; one of another digest is of an older build or configuration.
func (p Part) digest() string {
	var files []string
	for _, file := range append([]string{p.Path}, p.Starts...) {
		if info, err := os.Stat(file); err == nil {
			file = fmt.Sprintf("%s %d %d %d", file, inode(info), info.Size(), info.ModTime().UnixNano())
		}
		files = append(files, file)
	}
	var user uint32
	if p.User != nil {
		user = p.User.Uid
	}
	data, _ := json.Marshal([]any{files, p.Args, p.Env, p.Dir, user}) // strings and numbers: cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// inode tells a file from the one that was renamed over it, which may have the same size
// and, on file systems that count in ticks, the same time; 0 where there is none.
func inode(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// start runs the part in a process group of its own, so that Ctrl-C in the
// terminal reaches the supervisor only, and the parts stop in order. The log is
// a file and not a pipe: the part outlives a supervisor that is killed.
func (p Part) start() (*exec.Cmd, error) {
	if err := rotate(p.Log); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	// It outlives every context of ours: the keeper ends it.
	cmd := exec.CommandContext(context.Background(), p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.User}
	return cmd, cmd.Start()
}
