package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Logs are shown from where they ended at the start; each line whole, under the
// name of its part, also when a log is turned over or cut to nothing.
func TestLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(file(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("ctl-api.log", "of yesterday\n")
	var shown bytes.Buffer
	names := func() map[string]string { return map[string]string{"runner-rnr_1.log": "runner acme"} }
	l := openLogs(dir, &screen{w: &shown}, names)
	expect := func(want string) {
		t.Helper()
		l.read()
		if diff := cmp.Diff(want, shown.String()); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
		shown.Reset()
	}
	expect("")
	write("ctl-api.log", "one\nhal")
	write("runner-rnr_1.log", "enrolled\n")
	expect("ctl-api       │ one\nrunner acme   │ enrolled\n")
	write("ctl-api.log", "f\n")
	expect("ctl-api       │ half\n")
	if err := os.Rename(file("ctl-api.log"), file("ctl-api.log.1")); err != nil {
		t.Fatal(err)
	}
	write("ctl-api.log", "a new file that is longer than the old one was\n")
	expect("ctl-api       │ a new file that is longer than the old one was\n")
	if err := os.Truncate(file("ctl-api.log"), 0); err != nil {
		t.Fatal(err)
	}
	write("ctl-api.log", "cut\n")
	expect("ctl-api       │ cut\n")
}
