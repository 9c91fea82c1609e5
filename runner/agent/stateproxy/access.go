package stateproxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Access is how an engine reaches its proxy. It is kept with the attempt, so
// that a restarted agent listens on the same port with the same password.
type Access struct {
	Port     int    `json:"port"`
	Username string `json:"username"`
	Password string `json:"password"`
	// Socket is set when the engine is in another pod: the proxy listens there
	// instead, and the engine's pod leads the port of its own loopback to it.
	Socket string `json:"socket,omitempty"`
}

// NewAccess makes up a user and a password; the port is chosen by Listen.
func NewAccess() Access {
	random := func() string {
		var b [24]byte
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		return hex.EncodeToString(b[:])
	}
	return Access{Username: random()[:16], Password: random()}
}

// Env are the settings by which Terraform finds the proxy.
func (a Access) Env() []string {
	address := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	return []string{
		"TF_HTTP_ADDRESS=" + address + "/",
		"TF_HTTP_LOCK_ADDRESS=" + address + "/lock",
		"TF_HTTP_UNLOCK_ADDRESS=" + address + "/lock",
		"TF_HTTP_LOCK_METHOD=POST",
		"TF_HTTP_UNLOCK_METHOD=DELETE",
		"TF_HTTP_USERNAME=" + a.Username,
		"TF_HTTP_PASSWORD=" + a.Password,
		"TF_HTTP_RETRY_MAX=10",
		"TF_HTTP_RETRY_WAIT_MIN=1",
		"TF_HTTP_RETRY_WAIT_MAX=5",
	}
}

// Listen opens the port of the loopback that a wants, or any when it wants
// none, and returns a with the port; or the socket of a, which only this user
// can reach.
func Listen(ctx context.Context, a Access) (net.Listener, Access, error) {
	var config net.ListenConfig
	if a.Socket != "" {
		l, err := listenSocket(ctx, config, a.Socket)
		return l, a, err
	}
	l, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)))
	if err != nil {
		return nil, a, fmt.Errorf("state proxy: %w", err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		_ = l.Close()
		return nil, a, errors.New("state proxy: no TCP address")
	}
	a.Port = addr.Port
	return l, a, nil
}

func listenSocket(ctx context.Context, config net.ListenConfig, path string) (net.Listener, error) {
	if err := datadir.Remove(path); err != nil { // of an agent that was killed
		return nil, fmt.Errorf("state proxy: %w", err)
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("state proxy: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("state proxy: %w", err), l.Close())
	}
	return l, nil
}
