package procstat

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestStartTime(t *testing.T) {
	t.Parallel()
	const rest = " 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 "
	for name, tt := range map[string]struct {
		stat  string
		want  uint64
		ended bool
		err   bool
	}{
		"it runs":                                {stat: "7 (a) S" + rest + "9 0 4711 0", want: 4711},
		"a name with a parenthesis":              {stat: "7 (a) Z) S" + rest + "9 0 4711 0", want: 4711},
		"a zombie":                               {stat: "7 (a) Z" + rest + "1 0 4711 0", ended: true},
		"a zombie whose threads are left":        {stat: "7 (a) Z" + rest + "3 0 4711 0", want: 4711},
		"a zombie with many threads left":        {stat: "7 (a) Z" + rest + "12 0 4711 0", want: 4711},
		"it is being removed":                    {stat: "7 (a) X" + rest + "0 0 4711 0", ended: true},
		"an entry that nobody knows how to read": {stat: "7 (a) S 1", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := startTime([]byte(tt.stat))
			if got != tt.want || errors.Is(err, ErrEnded) != tt.ended || (err != nil) != (tt.ended || tt.err) {
				t.Errorf("started at %d, %v; want %d, ended %v", got, err, tt.want, tt.ended)
			}
		})
	}
}

func TestStartTimeOfAProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc")
	}
	if ticks, err := StartTime(os.Getpid()); err != nil || ticks == 0 {
		t.Errorf("this process began at %d, %v", ticks, err)
	}
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := StartTime(child.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that is gone: %v", err)
	}
}
