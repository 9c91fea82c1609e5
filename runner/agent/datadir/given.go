package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Take copies what the customer's side gives in another directory, such as a
// mounted Secret, to where it belongs: trust.json and config.json, ca.crt (to
// authorities/ca.crt, for trust.json to name), and the file enrolment while the
// runner is not enrolled. A file that is not there is
// left as it is here, so what was taken stays when it is taken away there.
func (d Dir) Take(from string) error {
	if err := errors.Join(d.Make(0), os.MkdirAll(d.join("authorities"), 0o700)); err != nil {
		return err
	}
	to := map[string]string{"trust.json": d.Trust(), "config.json": d.Config(), "ca.crt": d.join("authorities", "ca.crt")}
	if _, err := os.Stat(d.Runner()); errors.Is(err, fs.ErrNotExist) {
		to["enrolment"] = d.Enrolment()
	}
	for name, path := range to {
		given, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("take what is given: %w", err)
		}
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, given) {
			continue
		}
		if err := Write(path, given); err != nil {
			return fmt.Errorf("take what is given: %w", err)
		}
	}
	return nil
}
