package local

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/up"
)

// Down stops everything of the data folder, and deletes the folder when that is
// asked for. What it did goes to out.
func Down(out io.Writer, layout up.Layout, purge bool) error {
	if _, err := os.Stat(layout.Dir); errors.Is(err, fs.ErrNotExist) {
		_, err := output.Printf(out, "nothing to stop: the data folder %s does not exist\n", layout.Dir)
		return err
	}
	ended := 0
	err := up.Down(layout, func(e up.Ended) {
		ended++
		how := "stopped"
		if e.Killed {
			how = "killed"
		}
		output.Printf(out, "%s %s (pid %d)\n", how, e.Name, e.PID)
	})
	if err != nil {
		return err
	}
	if ended == 0 {
		output.Println(out, "nothing was running")
	}
	if !purge {
		return nil
	}
	deleted, err := up.Purge(layout)
	for _, dir := range deleted {
		output.Println(out, "deleted", dir)
	}
	return err
}
