// Package localpg runs a Postgres of this machine on a data folder of ours: it
// finds the server's binaries, makes the data folder, and says how to start the
// server on it and whether it runs. `berth up` and the tests use it, and
// dev/scripts/need.sh looks for the binaries with it. Keeping the process
// running, and stopping it, is left to the callers.
//
// The server listens on a unix socket only. Its administrator, postgres, is the
// user who made the data folder, recognised by the kernel; everybody else needs
// a password.
package localpg

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A Cluster is the data folder of one server, and how the server is run on it.
type Cluster struct {
	Bin    string              // folder of the server's binaries, as Find returns it
	Data   string              // the data folder, which Init makes
	Socket string              // folder of the unix socket: at most MaxSocketDir bytes
	User   *syscall.Credential // whom the server runs as, as ServerUser returns it

	// Scratch data may be lost with the machine: nothing waits for the disk.
	Scratch bool
}

const (
	port       = "5432"
	socketName = "/.s.PGSQL." + port

	// MaxSocketDir is how many bytes the path of Cluster.Socket may have: every
	// system takes 103 for the path of a socket.
	MaxSocketDir = 103 - len(socketName)
)

// Command is the server in the foreground, with settings such as
// "max_connections=200". It writes its log to stderr. SIGINT stops it "fast":
// it ends the sessions, then itself.
func (c Cluster) Command(settings ...string) *exec.Cmd {
	fsync := []string{"fsync=on"}
	if c.Scratch {
		fsync = []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off"}
	}
	args := []string{"-D", c.Data}
	for _, setting := range append(append([]string{
		"listen_addresses=", // the socket only
		"unix_socket_directories=" + c.Socket,
		"unix_socket_permissions=0700",
		"port=" + port,
		"hba_file=" + filepath.Join(c.Data, "pg_hba.conf"),
		"ident_file=" + filepath.Join(c.Data, "pg_ident.conf"),
	}, fsync...), settings...) {
		args = append(args, "-c", setting)
	}
	// It outlives every context of ours: the caller ends it.
	return c.program(context.Background(), "postgres", args)
}

// program runs one of the binaries in the data folder, as the server's user.
func (c Cluster) program(ctx context.Context, name string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, name), args...)
	cmd.Dir = c.Data
	cmd.Env = []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PATH=" + c.Bin + ":/usr/bin:/bin"}
	for _, name := range []string{"LD_LIBRARY_PATH", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.User}
	return cmd
}

// URL is the administrator's address. It holds no secret: the server knows the
// administrator by the user of the process that connects.
func (c Cluster) URL() string {
	return "postgres://postgres@/postgres?" + url.Values{"host": {c.Socket}, "port": {port}}.Encode()
}
