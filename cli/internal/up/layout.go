package up

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/berth-dev/berth/pkg/localpg"
)

const (
	// markerFile makes a folder recognisable as ours: only such a folder is
	// ever deleted, and only an empty one becomes ours.
	markerFile = ".berth-data"

	// minFreeBytes is what a start needs at least: a fresh Postgres takes 40
	// MiB, and one that runs into a full disk stops.
	minFreeBytes = 256 << 20
)

// Layout says where things are.
type Layout struct {
	// Dir is the data folder.
	Dir string

	// Shared is the folder for what runs as another user than us: Postgres and
	// the runners. It is Dir, unless Dir lies where others cannot get (as in
	// root's home directory).
	Shared string

	// Sockets is the folder of the unix sockets, with a path that is short.
	Sockets string
}

// DefaultDir is the data folder of this user: BERTH_DATA, /var/lib/berth for
// root, else ~/.local/share/berth.
func DefaultDir() (string, error) {
	if dir := os.Getenv("BERTH_DATA"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		const system = "/var/lib/berth"
		if _, err := os.Stat(system); err == nil || writable("/var/lib") {
			return system, nil
		}
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "berth"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", problem(err, "set BERTH_DATA to a folder for Berth's data", "there is no home directory to keep data in")
	}
	return filepath.Join(home, ".local", "share", "berth"), nil
}

func writable(dir string) bool {
	const write = 2 // W_OK
	return syscall.Access(dir, write) == nil
}

// LayoutAt names everything in the data folder at dir, without touching it.
func LayoutAt(dir string) (Layout, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	sum := sha256.Sum256([]byte(dir))
	key := hex.EncodeToString(sum[:6])
	l := Layout{Dir: dir, Shared: dir}
	if os.Geteuid() == 0 && !passable(filepath.Dir(dir)) {
		l.Shared = filepath.Join("/var/lib", "berth-"+key)
	}
	l.Sockets = filepath.Join(l.Shared, "run")
	if len(l.postgresSocketDir()) > localpg.MaxSocketDir {
		l.Sockets = filepath.Join("/tmp", "berth-"+key)
	}
	return l, nil
}

// passable tells whether every user may pass through dir and what is above.
func passable(dir string) bool {
	for {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// The files and folders, as the package comment tells.
func (l Layout) lock() string { return l.in("lock") }

// State is the supervisor's memory.
func (l Layout) State() string     { return l.in("state.json") }
func (l Layout) dsns() string      { return l.in("dsn") }
func (l Layout) masterKey() string { return l.in("keys", "master.key") }
func (l Layout) recovery() string  { return l.in("recovery") }
func (l Layout) registry() string  { return l.in("registry") }
func (l Layout) logDir() string    { return l.in("log") }

// Token holds the token of the first admin.
func (l Layout) Token() string        { return l.in("token") }
func (l Layout) terraformDir() string { return filepath.Join(l.Shared, "terraform") }
func (l Layout) binDir() string       { return filepath.Join(l.Shared, "bin") }
func (l Layout) postgresDir() string  { return filepath.Join(l.Shared, "postgres") }

// Runners has a folder for each runner.
func (l Layout) Runners() string    { return filepath.Join(l.Shared, "runners") }
func (l Layout) builderDir() string { return filepath.Join(l.Shared, "builder") }
func (l Layout) postgresSocketDir() string {
	return filepath.Join(l.Sockets, "postgres")
}

// Socket is the supervisor's, in a folder that only its user can enter.
func (l Layout) Socket() string { return filepath.Join(l.Sockets, "supervisor", "up.sock") }

func (l Layout) in(parts ...string) string {
	return filepath.Join(append([]string{l.Dir}, parts...)...)
}

// LogFile is where a part writes to.
func (l Layout) LogFile(part string) string { return filepath.Join(l.logDir(), part+".log") }

type marker struct {
	What    string `json:"what"`
	Dir     string `json:"dir"` // of the data folder that it belongs to
	Version int    `json:"version"`
}

// Exists tells whether there is a data folder of ours.
func (l Layout) Exists() bool { return marked(l.Dir) }

func marked(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, markerFile))
	var m marker
	return err == nil && json.Unmarshal(data, &m) == nil && m.Version > 0
}

// Make creates the data folder, or makes sure that the one that is there is
// ours and can be written.
func (l Layout) Make() error {
	for _, dir := range slices.Compact([]string{l.Dir, l.Shared}) {
		if err := claim(dir, l.Dir); err != nil {
			return err
		}
		if err := EnoughSpace(dir); err != nil {
			return err
		}
	}
	for dir, mode := range map[string]os.FileMode{
		l.dsns():                    0o700,
		filepath.Dir(l.masterKey()): 0o700,
		l.registry():                0o700,
		l.logDir():                  0o700,
		l.Runners():                 0o711, // engines pass through to their own
		l.builderDir():              0o711,
		l.terraformDir():            0o755,
		l.binDir():                  0o755,
		l.Sockets:                   0o711,
		filepath.Dir(l.Socket()):    0o700,
	} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return onDisk(l.Dir, err)
		}
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask says
			return onDisk(l.Dir, err)
		}
	}
	return nil
}

// claim makes dir ours when it is empty or new, and leaves it alone when it is.
func claim(dir, owner string) error {
	if !marked(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return onDisk(dir, err)
		}
		if len(entries) > 0 {
			return problem(nil, "set BERTH_DATA to a folder that is empty or does not exist",
				"%s is not empty and not a data folder of Berth", dir)
		}
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return onDisk(dir, err)
		}
	}
	if err := os.Chmod(dir, 0o711); err != nil { // others pass through, and list nothing
		return onDisk(dir, err)
	}
	// Written every time: it is also the proof that the folder can be.
	return onDisk(dir, writeJSON(filepath.Join(dir, markerFile), marker{What: "data folder of berth up", Dir: owner, Version: 1}))
}

// EnoughSpace tells whether the disk of a folder, which need not exist yet, has
// room for a start.
func EnoughSpace(dir string) error {
	for !fileExists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return nil //nolint:nilerr // cannot tell, so it is not the reason to stop
	}
	if free := int64(stat.Bavail) * int64(stat.Bsize); free < minFreeBytes { //nolint:unconvert // the types differ by system
		return problem(syscall.ENOSPC, "free some space there, or set BERTH_DATA to another folder",
			"the disk of the data folder %s has only %d MiB left, %d MiB are needed", dir, free>>20, minFreeBytes>>20)
	}
	return nil
}
