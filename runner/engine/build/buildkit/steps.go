package buildkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Steps turns what BuildKit reports into lines of a log, and remembers what is worth
// to know afterwards.
type Steps struct {
	// Log gets each line, Now the step that is worked on; both may be nil.
	Log func(line string)
	Now func(step string, since time.Time)

	numbers map[string]*step
	failed  *step
	bases   map[string]string
	partial map[string][]byte
}

type step struct {
	number  int
	name    string
	started time.Time
	ended   bool
	last    string // line that it wrote
}

// status is one line of `buildctl build --progress rawjson`: a part of BuildKit's
// SolveStatus.
type status struct {
	Vertexes []struct {
		Digest    string     `json:"digest"`
		Name      string     `json:"name"`
		Started   *time.Time `json:"started"`
		Completed *time.Time `json:"completed"`
		Cached    bool       `json:"cached"`
		Error     string     `json:"error"`
	} `json:"vertexes"`
	Logs []struct {
		Vertex string `json:"vertex"`
		Data   []byte `json:"data"`
	} `json:"logs"`
	Warnings []struct {
		Short []byte `json:"short"`
	} `json:"warnings"`
}

// maxLine bounds a line of a RUN step, in bytes; what is longer is cut into several.
const maxLine = 16 << 10

// maxSaid bounds what is kept of buildctl's own words, in bytes.
const maxSaid = 64 << 10

// follow reads until the end, and returns what is no status.
func (s *Steps) follow(r *bufio.Reader) (said string) {
	s.failed = nil
	s.numbers, s.bases, s.partial = map[string]*step{}, map[string]string{}, map[string][]byte{}
	for {
		line, err := r.ReadBytes('\n')
		var st status
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &st) == nil {
			s.take(st)
		} else if len(said) < maxSaid {
			said += string(line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				said += err.Error()
			}
			return said
		}
	}
}

// base is a FROM that BuildKit has resolved.
var base = regexp.MustCompile(`\bFROM (\S+)@(sha256:[0-9a-f]{64})`)

func (s *Steps) take(st status) {
	for _, v := range st.Vertexes {
		at := s.numbers[v.Digest]
		if at == nil {
			at = &step{name: oneLine(v.Name)}
			s.numbers[v.Digest] = at
		}
		if found := base.FindStringSubmatch(v.Name); found != nil {
			s.bases[found[1]] = found[2]
		}
		if v.Started != nil && at.number == 0 && (visible(v.Name) || v.Error != "") {
			at.number, at.started = s.count()+1, *v.Started
			s.log("step %d: %s", at.number, at.name)
		}
		switch {
		case v.Completed == nil || at.ended:
		case v.Error != "":
			at.ended, s.failed = true, at
			s.rest(v.Digest, at)
			s.log("step %d failed: %s", at.number, oneLine(v.Error))
		case at.number == 0:
			at.ended = true
		case v.Cached:
			at.ended = true
			s.log("step %d: cached", at.number)
		default:
			at.ended = true
			s.rest(v.Digest, at)
			s.log("step %d: done in %s", at.number, v.Completed.Sub(at.started).Round(time.Millisecond))
		}
	}
	for _, l := range st.Logs {
		s.output(l.Vertex, l.Data)
	}
	for _, w := range st.Warnings {
		s.log("warning: %s", oneLine(string(w.Short)))
	}
	s.show()
}

// visible leaves out how BuildKit reads its own inputs.
func visible(name string) bool { return !strings.HasPrefix(name, "[internal] ") }

func (s *Steps) count() (n int) {
	for _, at := range s.numbers {
		n = max(n, at.number)
	}
	return n
}

// output logs whole lines of a step.
func (s *Steps) output(vertex string, data []byte) {
	at := s.numbers[vertex]
	if at == nil || at.number == 0 {
		return
	}
	buf := slices.Concat(s.partial[vertex], data)
	for {
		end := bytes.IndexByte(buf, '\n')
		if end < 0 && len(buf) < maxLine {
			break
		}
		if end < 0 || end > maxLine {
			s.line(at, buf[:maxLine])
			buf = buf[maxLine:]
			continue
		}
		s.line(at, buf[:end])
		buf = buf[end+1:]
	}
	s.partial[vertex] = bytes.Clone(buf)
}

// rest logs what a step wrote without ending the line.
func (s *Steps) rest(vertex string, at *step) {
	if left := s.partial[vertex]; len(left) > 0 {
		s.line(at, left)
	}
	delete(s.partial, vertex)
}

func (s *Steps) line(at *step, text []byte) {
	clean := strings.ToValidUTF8(strings.TrimRight(string(text), "\r"), "�")
	if strings.TrimSpace(clean) != "" {
		at.last = clean
	}
	s.log("step %d | %s", at.number, clean)
}

func (s *Steps) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(fmt.Sprintf(format, args...))
	}
}

// show names the step that takes longest.
func (s *Steps) show() {
	if s.Now == nil {
		return
	}
	var oldest *step
	for _, at := range s.numbers {
		if at.number > 0 && !at.ended && (oldest == nil || at.started.Before(oldest.started)) {
			oldest = at
		}
	}
	if oldest != nil {
		s.Now(oldest.name, oldest.started)
	}
}

// Bases are the images that the build started from, as resource descriptors of its
// provenance.
func (s *Steps) Bases() (list []Resource) {
	for _, name := range slices.Sorted(maps.Keys(s.bases)) {
		list = append(list, Resource{URI: "pkg:docker/" + name, Digest: map[string]string{"sha256": strings.TrimPrefix(s.bases[name], "sha256:")}})
	}
	return list
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
