package toolchain_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/runner/agent/toolchain"
)

// archive is one with a file of this name.
func archive(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pin(raw []byte) map[string]string {
	sum := sha256.Sum256(raw)
	return map[string]string{runtime.GOOS + "/" + runtime.GOARCH: hex.EncodeToString(sum[:])}
}

func TestTerraform(t *testing.T) {
	t.Parallel()
	good := archive(t, "terraform", "a program")
	other := archive(t, "terraform", "another program")
	for _, tc := range []struct {
		name   string
		pins   map[string]string
		answer http.HandlerFunc
		want   string // of the error; empty: it is there
	}{
		{name: "the archive that is pinned", pins: pin(good), answer: send(good)},
		{name: "another archive", pins: pin(good), answer: send(other), want: "not the archive"},
		{name: "half of it", pins: pin(good), answer: send(good[:len(good)/2]), want: "not the archive"},
		{name: "it breaks off", pins: pin(good), answer: breakOff(good), want: "unexpected EOF"},
		{name: "not found", pins: pin(good), answer: http.NotFound, want: "404"},
		{name: "nothing is pinned for this machine", pins: map[string]string{"plan9/mips": "0"}, answer: send(good), want: "is known for"},
		{name: "no program in it", pins: pin(archive(t, "readme", "")), answer: send(archive(t, "readme", "")), want: "archive:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				want := "/1.11.4/terraform_1.11.4_" + runtime.GOOS + "_" + runtime.GOARCH + ".zip"
				if r.URL.Path != want {
					t.Errorf("asked for %s, want %s", r.URL.Path, want)
				}
				tc.answer(w, r)
			}))
			t.Cleanup(site.Close)
			dir := t.TempDir()
			source := toolchain.Source{Site: site.URL, Client: site.Client(), Pins: tc.pins}
			path, err := source.Terraform(t.Context(), dir)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want an error with %q", err, tc.want)
				}
				if strings.Contains(tc.want, "not the archive") != errors.Is(err, toolchain.ErrUntrusted) {
					t.Errorf("%v: is it ErrUntrusted?", err)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "terraform", "*", "*")); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil || string(text) != "a program" {
				t.Errorf("%s: %q, %v", path, text, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("mode %v, %v; want 0755", info.Mode(), err)
			}
			again, err := source.Terraform(t.Context(), dir)
			if err != nil || again != path || asked.Load() != 1 {
				t.Errorf("again: %s, %v, asked %d times; want the same, asked once", again, err, asked.Load())
			}
		})
	}
}

func send(raw []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }
}

// breakOff promises more than it sends.
func breakOff(raw []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(raw)
	}
}
