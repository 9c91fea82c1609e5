package enginepod

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Start is what Launch starts. It is a file, not a part of the Job, since the
// environment may hold passwords and Jobs can be read in the cluster.
type Start struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`
	// Digests are those of executables, by path, which must be the same in the
	// pod as where the order was checked.
	Digests map[string]string `json:"digests"`
	// Relay is the port of the pod's loopback that leads to Folder.Socket, 0 for
	// none.
	Relay int `json:"relay,omitempty"`
	// OwnImage: the pod's image is not the runner's, see InImage.
	OwnImage bool `json:"own_image,omitempty"`
}

// Folder is the directory that the agent shares with Launch.
type Folder string

func (f Folder) start() string  { return filepath.Join(string(f), "start.json") }
func (f Folder) marker() string { return filepath.Join(string(f), "begun") }

// Stdout is where the engine's standard output goes.
func (f Folder) Stdout() string { return filepath.Join(string(f), "stdout.log") }

// Stderr is where its standard error goes.
func (f Folder) Stderr() string { return filepath.Join(string(f), "stderr.log") }

// written are the files that an engine's pod writes to. They are there before it.
func (f Folder) written() []string { return []string{f.marker(), f.Stdout(), f.Stderr()} }

// Socket is where the agent answers what comes to Start.Relay.
func (f Folder) Socket() string { return filepath.Join(string(f), "state.sock") }

// Make makes the folder for the engine's user. That user owns the files it
// writes and not the folder, so it can put nothing else in their place. The
// folder is opened to it last.
func (f Folder) Make(s Start, uid, gid int) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	folder, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for _, path := range f.written() {
		name := filepath.Base(path)
		file, err := folder.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		if err := folder.Lchown(name, uid, gid); err != nil {
			return err
		}
	}
	if err := datadir.WriteJSON(f.start(), s); err != nil {
		return fmt.Errorf("write what to start: %w", err)
	}
	for _, open := range []struct {
		name string
		mode os.FileMode
	}{{filepath.Base(f.start()), 0o440}, {".", 0o750}} {
		if err := folder.Lchown(open.name, -1, gid); err != nil {
			return err
		}
		if err := folder.Chmod(open.name, open.mode); err != nil {
			return err
		}
	}
	return nil
}
