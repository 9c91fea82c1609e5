package buildkit

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Epoch is the time of every file of a built image, and of the image. It is the
// same for all builds, so that equal contents give an equal digest whatever the
// commit; and it is not 1970, because ZIP, and with it Python, has no time before
// 1980. A day into that year it is so in every time zone.
var Epoch = time.Date(1980, time.January, 2, 0, 0, 0, 0, time.UTC)

// Modes of files in a context, which COPY keeps. Git knows no others.
const (
	modeDir        = 0o755
	modeFile       = 0o644
	modeExecutable = 0o755
)

// Normalise gives a context what does not depend on who copied it, and when: modes
// and times. Owners need nothing, BuildKit makes them root.
func Normalise(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			dirs = append(dirs, path)
			return os.Chmod(path, modeDir)
		case e.Type().IsRegular():
			info, err := e.Info()
			if err != nil {
				return err
			}
			mode := fs.FileMode(modeFile)
			if info.Mode()&0o100 != 0 {
				mode = modeExecutable
			}
			if err := os.Chmod(path, mode); err != nil {
				return err
			}
		}
		return setTime(path)
	})
	if err != nil {
		return err
	}
	for _, path := range dirs { // what changed in them is done
		if err := setTime(path); err != nil {
			return err
		}
	}
	return nil
}

// setTime does not follow a symlink.
func setTime(path string) error {
	at := unix.NsecToTimespec(Epoch.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}
