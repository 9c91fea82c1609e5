package action

import (
	"io"
	"os"
	"strings"

	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	// maxLastWords bounds the last line that an error quotes, in bytes. A longer one
	// is left out, not cut: in a part of it no secret would be recognised.
	maxLastWords = 300
	// lookBack is how much of the log's end is searched for that line, in bytes.
	lookBack = 8 << 10
)

// heard is how much of the log there was, in bytes.
type heard struct{ stdout, stderr int64 }

func said(j *job.Job) heard { return heard{sizeOf(j.Stdout), sizeOf(j.Stderr)} }

// lastWords is the last line that was written since, with ": " before it: of stderr,
// else of stdout. It is "" where the log cannot be read back, as in a pod.
func (h heard) lastWords(j *job.Job) string {
	for _, log := range []struct {
		file *os.File
		from int64
	}{{j.Stderr, h.stderr}, {j.Stdout, h.stdout}} {
		if line := lastLine(log.file, log.from); line != "" {
			return ": " + line
		}
	}
	return ""
}

func lastLine(f *os.File, from int64) string {
	end := sizeOf(f)
	from = max(from, end-lookBack)
	if end <= from {
		return ""
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, from, end-from))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(tail))
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(line) > maxLastWords {
		return ""
	}
	return strings.ToValidUTF8(line, "")
}

// sizeOf is the size of a file, 0 of anything else.
func sizeOf(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
