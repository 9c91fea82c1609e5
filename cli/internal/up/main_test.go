package up_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The services and runners of these tests are this executable under other
// names: what matters here is that they are real processes with real ports.
// Postgres is Postgres.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	switch {
	case os.Getenv("BERTH_TEST_SUPERVISE") != "":
		superviseForTest()
	case name == "berth-ctl-api" && len(os.Args) > 1 && os.Args[1] != "serve":
		command(os.Args[1:])
	case name == "berth-runner" && len(os.Args) == 6 && os.Args[1] == "registry":
		serveAt(os.Args[5], "GET /v2/")
	case name == "berth-runner" && slices.Contains(os.Args, "vouch"):
		// as the real one, which runner/ tests
	case name == "berth-runner":
		<-terminated()
	case strings.HasPrefix(name, "berth-"):
		serve(name)
	default:
		os.Exit(m.Run())
	}
}

func terminated() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

// command is `berth-ctl-api migrate` and `bootstrap`: it leaves a trace of how
// it was called, and fails when the test wants it to.
func command(args []string) {
	if text := os.Getenv("BERTH_TEST_FAIL_" + strings.ToUpper(args[0])); text != "" {
		_, _ = os.Stderr.WriteString(text + "\n")
		os.Exit(1)
	}
	for i, arg := range args {
		if arg == "--dsn-dir" {
			if err := os.MkdirAll(args[i+1], 0o700); err != nil {
				os.Exit(1)
			}
			if err := os.WriteFile(filepath.Join(args[i+1], "builder.dsn"), []byte("postgres://berth_builder:correct-horse-battery@/berth\n"), 0o600); err != nil {
				os.Exit(1)
			}
		}
		if arg == "--token-file" {
			if err := os.WriteFile(args[i+1], []byte("brt_test\n"), 0o600); err != nil {
				os.Exit(1)
			}
		}
	}
}

// serveAt is a process that answers one question.
func serveAt(address, route string) {
	mux := http.NewServeMux()
	mux.HandleFunc(route, func(http.ResponseWriter, *http.Request) {})
	go func() { _ = (&http.Server{Addr: address, Handler: mux}).ListenAndServe() }()
	<-terminated()
}

// serve answers /readyz, and takes stacks that phone home.
func serve(name string) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /stacks/phone-home", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var home struct{ Secret string }
		if json.Unmarshal(body, &home) != nil || home.Secret != "bph_right" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		_ = os.WriteFile(filepath.Join(os.Getenv("BERTH_UP"), "phoned-home.json"), body, 0o600)
	})
	if text := os.Getenv("BERTH_TEST_FAIL_SERVICE"); text != "" && name == "berth-builder" {
		dsn, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("BERTH_DSN_FILE")), "builder.dsn"))
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s %s\ntime=x level=INFO msg=stopped\n", name, text, strings.TrimSpace(string(dsn)))
		os.Exit(1)
	}
	server := &http.Server{Addr: os.Getenv("BERTH_LISTEN"), Handler: mux}
	go func() {
		<-terminated()
		os.Exit(0)
	}()
	_, _ = os.Stderr.WriteString(name + ": " + server.ListenAndServe().Error() + "\n")
	os.Exit(1)
}
