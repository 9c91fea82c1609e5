package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/evidence"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// openLogs opens the spool of the attempt. A damaged one is set aside and a new
// one takes its place: the attempt goes on, and its log says that lines are
// missing. A full disk is no damage.
func (j *job) openLogs() error {
	dir := j.deps.Dir.Spool(j.attempt.Name())
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && j.attempt.Phase != recovery.Claimed {
		// Of an earlier agent, which made it before anything else happened.
		spool, err := j.newSpool(dir, "lines may be missing here: the log spool of this attempt is gone from the runner's disk", j.written())
		if err == nil {
			j.takeSpool(spool)
		}
		return err
	}
	var spool *logship.Spool
	err := j.deps.Disk.Insist(func() (err error) {
		spool, err = logship.OpenSpool(dir, logship.Options{})
		return err
	})
	if err != nil && !disk.Full(err) {
		spool, err = j.replaceSpool(dir, err)
	}
	if err != nil {
		return err
	}
	j.takeSpool(spool)
	return nil
}

// takeSpool makes the log of the attempt of its spool.
func (j *job) takeSpool(spool *logship.Spool) {
	j.logs = newLogs(spool, j.secrets, j.log)
	name, job := j.attempt.Name(), j.spec.JobID // the log is shipped while the attempt moves on
	j.logs.withholding = withholding{off: j.off, path: filepath.Join(j.deps.Dir.Egress(), "withheld", name+".log")}
	if j.tick != nil {
		return // there are too many of them
	}
	j.logs.keep = func(stream string, end logship.Head) error {
		return datadir.WriteJSON(j.deps.Dir.KeptLog(name), evidence.Log{Job: job, Stream: stream, Lines: end.NextSeq - 1, Hash: end.Hash.String()})
	}
}

func (j *job) replaceSpool(dir string, why error) (*logship.Spool, error) {
	// What was read before is not read again where that can be helped: by now
	// less is known of what must not be shown.
	from, known := logship.LastPosition(dir)
	if !known {
		from = j.written()
	}
	to, err := j.deps.Dir.SetAside(dir, j.attempt.Name(), why)
	if to == "" && err != nil {
		return nil, errors.Join(why, err)
	}
	j.log.Error("log spool is damaged; it was set aside and the attempt continues", "err", why, "set_aside", to)
	j.storedEvent(context.Background(), "damaged log spool was set aside", why.Error())
	return j.newSpool(dir, "lines are missing here: the log spool of this attempt was damaged on the runner's disk and set aside as "+to, from)
}

// newSpool makes a spool that says with its first line what happened.
func (j *job) newSpool(dir, text string, from logship.Position) (spool *logship.Spool, err error) {
	err = j.deps.Disk.Insist(func() (err error) {
		spool, err = logship.ReplaceSpool(dir, logship.Options{}, text, from)
		return err
	})
	return spool, err
}

// written is how much the engine has written by now.
func (j *job) written() logship.Position {
	return logship.Position{Stdout: fileSize(j.stdout()), Stderr: fileSize(j.stderr())}
}

// stdout and stderr are where the engine of the attempt writes.
func (j *job) stdout() string {
	if j.attempt.Pod {
		return j.dir.Pod().Stdout()
	}
	return j.dir.Stdout()
}

func (j *job) stderr() string {
	if j.attempt.Pod {
		return j.dir.Pod().Stderr()
	}
	return j.dir.Stderr()
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// finishLogs stores that no more lines come.
func (j *job) finishLogs() error {
	return j.deps.Disk.Insist(j.logs.spool.Finish)
}

// endLogs is finishLogs until it works. A spool that cannot be written for
// another reason than room is left to the next start: its report is delivered.
func (j *job) endLogs(life context.Context) error {
	return j.stored(life, "end of the log", func() error {
		err := j.logs.spool.Finish()
		if err != nil && !disk.Full(err) && !errors.Is(err, logship.ErrFull) {
			j.log.ErrorContext(life, "log cannot be ended", "err", err)
			j.logs.giveUp()
			return nil
		}
		return err
	})
}
