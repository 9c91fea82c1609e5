package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		took []time.Duration
		want time.Duration
	}{
		{[]time.Duration{7}, 7},
		{[]time.Duration{9, 1, 3}, 3},
		{[]time.Duration{4, 1, 100, 2}, 3},
	} {
		if got := median(slices.Sorted(slices.Values(tt.took))); got != tt.want {
			t.Errorf("median of %v: %d, want %d", tt.took, got, tt.want)
		}
	}
}

// A loop of a few lines of shell: it compiles and runs what is saved, so each save
// takes at least as long as the compiler, and the file is gone at the end.
func TestMeasure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module saved\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() {}\n",
		"loop.sh": "trap exit INT\ncd \"$1\"\nbefore=\nwhile sleep 0.05; do\n  now=$(cat saved.go 2>/dev/null) || continue\n  [ \"$now\" = \"$before\" ] || GOWORK=off go run .\n  before=$now\ndone\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	m := measurement{loop: "shell", file: filepath.Join(dir, "saved.go"), ready: server.URL, times: 2}
	took, err := m.run(t.Context(), []string{bash, filepath.Join(dir, "loop.sh"), dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(took) != 2 || slices.Min(took) < 50*time.Millisecond {
		t.Errorf("took %v, want two times of a compiler", took)
	}
	if _, err := os.Stat(m.file); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", m.file, err)
	}
}
