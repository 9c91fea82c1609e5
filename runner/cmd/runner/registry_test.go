package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRegistryServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"registry", "--data", t.TempDir(), "--listen", address})
	go func() { ended <- root.ExecuteContext(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("/v2/ answers %s", resp.Status)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
}

// Nobody serves the images to a network by mistake.
func TestRegistryIsOnLoopbackOrHasAToken(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:5000"},
		{"--listen", "[::]:5000"},
		{"--listen", "192.0.2.1:5000"},
		{"--listen", "0.0.0.0:5000", "--token-file", short},
		{"relay", "--to", "192.0.2.1:5000", "--token-file", short},
		{"relay", "--to", "192.0.2.1:5000"},
		{"relay", "--listen", "0.0.0.0:5000", "--to", "192.0.2.1:5000", "--token-file", short},
		{"relay", "--token-file", short},
	} {
		if _, err := call(t, append([]string{"registry", "--data", t.TempDir()}, args...)...); exitCode(err) != exitUsage {
			t.Errorf("%v: %v, want a mistake of usage", args, err)
		}
	}
}

func TestRegistryWantsAnAddress(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"", "5000", ":5000", "127.0.0.1:"} {
		if _, err := call(t, "registry", "--data", t.TempDir(), "--listen", listen); exitCode(err) != exitUsage {
			t.Errorf("--listen %q: %v, want a mistake of usage", listen, err)
		}
	}
}
