package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// init is the whole program when the process was started as a launcher.
func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	// Users, capabilities and namespaces are a thread's until the engine starts.
	runtime.LockOSThread()
	if err := launch(); err != nil {
		fmt.Fprint(os.NewFile(statusFD, "status"), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errNoPlan: the agent died, or changed its mind.
var errNoPlan = errors.New("the agent gave no plan")

// launch returns only when there is no engine.
func launch() error {
	parent := os.Getppid()
	syscall.CloseOnExec(planFD)
	syscall.CloseOnExec(statusFD)
	raw, err := io.ReadAll(os.NewFile(planFD, "plan"))
	if err != nil {
		return err
	}
	var p Plan
	if len(raw) == 0 {
		return errNoPlan
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return errNoPlan // cut short
	}
	if err := closeFrom(InheritFD + p.Inherit); err != nil {
		return err
	}
	if err := p.join(); err != nil {
		return err
	}
	if p.Loopback {
		if err := raiseLoopback(); err != nil {
			return err
		}
	}
	executable := -1
	switch {
	case p.Bare:
		if executable, err = strip(p.Path); err != nil {
			return err
		}
	case p.Sight != nil:
		if err := p.Sight.look(); err != nil {
			return err
		}
	}
	if p.OwnUsers {
		if err := barNamespaces(); err != nil {
			return err
		}
	}
	if p.Bare {
		if err := empty(); err != nil {
			return err
		}
	}
	if p.UID != 0 || p.OwnUsers {
		if err := p.become(); err != nil {
			return err
		}
	}
	if p.Parental {
		if err := prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM)); err != nil {
			return fmt.Errorf("ask to be told of the agent's death: %w", err)
		}
		if os.Getppid() != parent {
			return errNoPlan // it is dead already
		}
	}
	if err := syscall.Chdir(p.Dir); err != nil {
		return fmt.Errorf("user %d, as whom the engine runs, cannot get to %s: %w", os.Getuid(), p.Dir, err)
	}
	if p.Try {
		if p.Bare {
			return ready()
		}
		if err := p.try(); err != nil {
			return err
		}
		return ready()
	}
	if err := ready(); err != nil {
		return err
	}
	arguments := append([]string{p.Path}, os.Args[1:]...)
	if p.Bare {
		err = execDescriptor(executable, arguments, p.Env)
	} else {
		err = syscall.Exec(p.Path, arguments, p.Env)
	}
	return fmt.Errorf("start %s as user %d: %w", p.Path, os.Getuid(), err)
}

// ready says that nothing is left to do but to become the engine.
func ready() error {
	_, err := syscall.Write(statusFD, []byte(Ready))
	return err
}

// join moves this thread, the one that becomes the engine, into its control
// groups.
func (p Plan) join() error {
	for _, path := range p.Groups {
		fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("control group %s: %w", path, err)
		}
		_, err = syscall.Write(fd, []byte("0"))
		_ = syscall.Close(fd)
		if err != nil {
			return fmt.Errorf("control group %s: %w", path, err)
		}
	}
	return nil
}

// try looks whether an engine would find what it needs.
func (p Plan) try() error {
	const read, write, search = 4, 2, 1
	if err := syscall.Access(p.Path, read|search); err != nil {
		return fmt.Errorf("user %d, as whom engines run, cannot start %s: %w", os.Getuid(), p.Path, err)
	}
	if s := p.Sight; s != nil && s.Scratch != "" {
		if err := syscall.Access(s.Scratch, read|write|search); err != nil {
			return fmt.Errorf("user %d, as whom engines run, cannot write to %s: %w", os.Getuid(), s.Scratch, err)
		}
	}
	return nil
}
