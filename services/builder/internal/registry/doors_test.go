package registry_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// Nothing is read of who shows no good token, or two of them, and nobody holds a
// connection with a byte now and then; a blob of any size goes through.
func TestAttackBodiesOfTheRegistry(t *testing.T) { inEveryStorage(t, testAttackBodiesOfTheRegistry) }

func testAttackBodiesOfTheRegistry(t *testing.T, in place) {
	config := in.config(anyone{})
	config.Grace, config.ManifestMemory = time.Second, intake.NewMemory(8<<20, 2<<20)
	reg, err := registry.New(config)
	must(t, err)
	server := httptest.NewServer(intake.Handler(reg))
	t.Cleanup(server.Close)
	ask := func(method, path string, length int, send []byte, headers ...string) int {
		t.Helper()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		must(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", method, path, length)
		for _, header := range headers {
			fmt.Fprintf(conn, "%s\r\n", header)
		}
		_, _ = io.WriteString(conn, "\r\n")
		_, _ = conn.Write(send)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s %s: no answer: %v", method, path, err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	const manifest, good = "/v2/org_a/app/manifests/v1", "Authorization: Bearer brg_x"
	part := bytes.Repeat([]byte("x"), 64<<10)
	for _, tc := range []struct {
		name    string
		path    string
		length  int
		headers []string
		want    int
	}{
		{name: "without a token", path: manifest, length: 4 << 20, want: 401},
		{name: "with two", path: manifest, length: 4 << 20, headers: []string{good, "Authorization: Bearer brg_y"}, want: 401},
		{name: "a manifest larger than any", path: manifest, length: 1 << 30, headers: []string{good}, want: 413},
		{name: "a manifest that is announced and not sent", path: manifest, length: 1 << 20, headers: []string{good}, want: 408},
		{name: "a manifest for which there is no memory", path: manifest, length: 3 << 20, headers: []string{good}, want: 503},
	} {
		if got := ask(http.MethodPut, tc.path, tc.length, part, tc.headers...); got != tc.want {
			t.Errorf("%s: answered %d, want %d", tc.name, got, tc.want)
		}
	}
	// A blob that stops in the middle is ended, whatever was announced.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v2/org_a/app/blobs/uploads/", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer brg_x")
	begun, err := http.DefaultClient.Do(req)
	must(t, err)
	_ = begun.Body.Close()
	begin := time.Now()
	status := ask(http.MethodPatch, begun.Header.Get("Location"), 1<<30, part[:1<<10], good, "Content-Type: application/octet-stream")
	if took := time.Since(begin); status < 400 || took > 15*time.Second {
		t.Errorf("a blob that stops was answered %d after %s", status, took)
	}
}
