package scriptfile_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/engine/scriptfile"
)

// Whatever a script made in the place of its file, reading ends at once and takes
// nothing from elsewhere.
func TestAttackRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("eight by"), 0o600))
	must(os.WriteFile(at("large"), []byte("nine byte"), 0o600))
	must(os.Symlink(at("file"), at("link")))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.Mkdir(at("folder"), 0o700))
	must(os.Truncate(at("large"), 10<<30))
	socket, err := net.Listen("unix", at("socket"))
	must(err)
	defer func() { _ = socket.Close() }()
	for name, want := range map[string]error{
		"file": nil, "none": fs.ErrNotExist, "link": scriptfile.ErrNotRegular, "pipe": scriptfile.ErrNotRegular, "folder": scriptfile.ErrNotRegular,
		"socket": scriptfile.ErrNotRegular, "large": scriptfile.TooLargeError{Bytes: 8}, "../../../../../../../../dev/zero": scriptfile.ErrNotRegular,
	} {
		read := make(chan error, 1)
		go func() {
			data, err := scriptfile.Read(at(name), 8)
			if err == nil && string(data) != "eight by" {
				err = errors.New("it read " + strings.ToValidUTF8(string(data), "?"))
			}
			read <- err
		}()
		select {
		case got := <-read:
			if !errors.Is(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: reading does not end", name)
		}
	}
}
