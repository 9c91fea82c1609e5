package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// look is how often logs are read.
const look = 100 * time.Millisecond

// logs show what the logs of a folder grow by. Files come and go: a part's log is
// turned over when it is long.
type logs struct {
	dir   string
	show  *screen
	names func() map[string]string // of parts, by the name of their log
	files map[string]*logFile
	end   chan struct{}
	ended chan struct{}
}

// logFile is as far as it was shown.
type logFile struct {
	info   os.FileInfo // what it was then, nil for one that was not there
	offset int64
	rest   []byte // of a line that is not complete
	name   string // of the part, "" while nothing was shown
}

// openLogs begins where the logs end now.
func openLogs(dir string, show *screen, names func() map[string]string) *logs {
	l := &logs{dir: dir, show: show, names: names, files: map[string]*logFile{}, end: make(chan struct{}), ended: make(chan struct{})}
	for _, path := range l.paths() {
		if info, err := os.Stat(path); err == nil {
			l.files[path] = &logFile{info: info, offset: info.Size()}
		}
	}
	return l
}

// start shows what is written, until stop is called.
func (l *logs) start() {
	go func() {
		defer close(l.ended)
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.read()
			case <-l.end:
				l.read()
				return
			}
		}
	}()
}

// stop shows what is left and returns.
func (l *logs) stop() {
	close(l.end)
	<-l.ended
}

func (l *logs) paths() []string {
	paths, _ := filepath.Glob(filepath.Join(l.dir, "*.log")) // only a bad pattern is an error
	slices.Sort(paths)
	return paths
}

func (l *logs) read() {
	for _, path := range l.paths() {
		file, ok := l.files[path]
		if !ok {
			file = &logFile{}
			l.files[path] = file
		}
		for _, line := range file.grown(path) {
			if file.name == "" {
				file.name = l.nameOf(filepath.Base(path))
			}
			l.show.line(file.name, line)
		}
	}
}

// nameOf a part: its log has it, but for those that are named after an id.
func (l *logs) nameOf(log string) string {
	if strings.HasPrefix(log, "runner-rnr_") || strings.HasPrefix(log, "registry-rnr_") {
		if name := l.names()[log]; name != "" {
			return name
		}
	}
	return strings.TrimSuffix(log, ".log")
}

// grown are the complete lines that were written since the last look. A file that
// is another one now, or shorter, is read from its beginning.
func (f *logFile) grown(path string) (lines []string) {
	in, err := os.Open(path)
	if err != nil {
		return nil // turned over just now
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return nil
	}
	if f.info == nil || !os.SameFile(f.info, info) || info.Size() < f.offset {
		f.offset, f.rest = 0, nil
	}
	f.info = info
	data, err := io.ReadAll(io.NewSectionReader(in, f.offset, info.Size()-f.offset))
	if err != nil {
		return nil
	}
	f.offset += int64(len(data))
	f.rest = append(f.rest, data...)
	for {
		line, rest, ok := bytes.Cut(f.rest, []byte("\n"))
		if !ok {
			return lines
		}
		lines, f.rest = append(lines, string(line)), rest
	}
}
