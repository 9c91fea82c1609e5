package exposition

import (
	"errors"
	"io/fs"

	"github.com/berth-dev/berth/runner/engine/scriptfile"
)

// MaxBytes bounds a metrics file.
const MaxBytes = 256 << 10

// ReadFile reads the file at path; where there is none, there is nothing in it.
func ReadFile(path string) Text {
	data, err := scriptfile.Read(path, MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Text{}
	case errors.As(err, new(scriptfile.TooLargeError)):
		return unread(err.Error() + ": none of its numbers are kept")
	case errors.Is(err, scriptfile.ErrNotRegular):
		return unread(err.Error())
	case err != nil:
		return unread("cannot be read")
	}
	return Parse(data)
}

func unread(why string) Text { return Text{Problems: []string{"the metrics file " + why}} }
