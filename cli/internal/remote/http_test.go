package remote_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/remote"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// fetched fetches addresses and returns the results and what was told.
func fetched(t *testing.T, addresses ...string) (map[string]fetch.Result, []string) {
	t.Helper()
	var told []string
	f := remote.New(func(line string) { told = append(told, line) })
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	results := f.Fetch(t.Context(), addresses)
	return results, told
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// refused holds that an address is not fetched, and why.
func refused(t *testing.T, name string, got fetch.Result, want string) {
	t.Helper()
	if !strings.Contains(got.Problem, want) || got.Contents != nil {
		t.Errorf("%s: got %.80q, %q, want the problem %q", name, got.Contents, got.Problem, want)
	}
}

func TestFetchInOrder(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		now := running.Add(1)
		defer running.Add(-1)
		for {
			seen := most.Load()
			if now <= seen || most.CompareAndSwap(seen, now) {
				break
			}
		}
		if !strings.HasPrefix(r.UserAgent(), "berth/") {
			t.Errorf("the server is asked by %q", r.UserAgent())
		}
		if r.URL.Path == "/3" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "contents of %s", r.URL.Path)
	})
	var addresses, told []string
	for i := range 9 {
		addresses = append(addresses, fmt.Sprintf("%s/%d", url, 8-i))
		if i != 3 {
			told = append(told, fmt.Sprintf("fetched %s/%d, 14 bytes", url, i))
		}
	}
	results, got := fetched(t, append(addresses, addresses...)...)
	if diff := cmp.Diff(told, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if string(results[url+"/7"].Contents) != "contents of /7" || len(results) != 9 {
		t.Errorf("got %v", results)
	}
	refused(t, "what is not there", results[url+"/3"], "answered 404 Not Found")
	if n := most.Load(); n > 4 {
		t.Errorf("%d addresses at once", n)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/private":
			w.WriteHeader(http.StatusUnauthorized)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/page", "/page.html":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
		case "/largest":
			fmt.Fprint(w, strings.Repeat("x", fetch.MaxBytes))
		case "/empty":
		}
	})
	results, _ := fetched(t, url+"/private", url+"/broken", url+"/page", url+"/page.html", url+"/cut", url+"/largest", url+"/empty", "http://127.0.0.1:1/x", "http://host.invalid/x")
	refused(t, "what needs credentials", results[url+"/private"], "401 Unauthorized")
	refused(t, "a broken server", results[url+"/broken"], "502 Bad Gateway")
	refused(t, "a page for people", results[url+"/page"], "is a web page")
	refused(t, "half of a file", results[url+"/cut"], "cannot be fetched: unexpected EOF")
	refused(t, "nobody there", results["http://127.0.0.1:1/x"], "cannot be fetched: 127.0.0.1:1 refuses the connection")
	refused(t, "no such host", results["http://host.invalid/x"], "host.invalid")
	if r := results[url+"/page.html"]; string(r.Contents) != "<html>" {
		t.Errorf("a page that is asked for: %+v", r)
	}
	if r := results[url+"/largest"]; len(r.Contents) != fetch.MaxBytes {
		t.Errorf("the largest file: %d bytes, %s", len(r.Contents), r.Problem)
	}
	if r := results[url+"/empty"]; r.Problem != "" || len(r.Contents) != 0 {
		t.Errorf("an empty file: %+v", r)
	}
}

// A hostile server gets neither memory nor time.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			block := []byte(strings.Repeat("x", 64<<10))
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			zipped := gzip.NewWriter(w)
			block := make([]byte, 1<<20)
			for range 64 {
				if _, err := zipped.Write(block); err != nil {
					return
				}
			}
			_ = zipped.Close()
		case "/slow":
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					close(stopped)
					return
				case <-tick.C:
				}
			}
		case "/silent":
			<-r.Context().Done()
		case "/headers":
			for i := range 10_000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
			}
		}
	})
	began := time.Now()
	results, told := fetched(t, url+"/endless", url+"/bomb", url+"/slow", url+"/silent", url+"/headers")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	refused(t, "an endless answer", results[url+"/endless"], "is larger than 1 MiB")
	refused(t, "a bomb", results[url+"/bomb"], "is larger than 1 MiB")
	refused(t, "a slow answer", results[url+"/slow"], "did not arrive within 5s")
	refused(t, "no answer", results[url+"/silent"], "did not arrive within 5s")
	refused(t, "endless headers", results[url+"/headers"], "cannot be fetched")
	if !strings.Contains(strings.Join(told, "\n"), "still waiting for "+url) {
		t.Errorf("nothing was said while it waited: %q", told)
	}
	<-stopped
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var plain string
	handler := func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/file": "file:///etc/passwd", "/ftp": "ftp://example.invalid/", "/plain": plain + "/here", "/user": "http://u:canary@" + r.Host + "/here",
			"/loop": "/loop", "/fine": "/here", "/cloud": "http://169.254.169.254/latest/meta-data/", "/cloud6": "http://[fe80::1]/",
		}[r.URL.Path]
		if to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprint(w, "here")
	}
	plain = serve(t, handler)
	secure := httptest.NewTLSServer(http.HandlerFunc(handler))
	t.Cleanup(secure.Close)
	var told []string
	f := remote.New(func(line string) { told = append(told, line) })
	f.Over(secure.Client().Transport)
	for _, url := range []string{plain, secure.URL} {
		results := f.Fetch(t.Context(), []string{url + "/file", url + "/ftp", url + "/user", url + "/loop", url + "/fine", url + "/plain"})
		refused(t, "to a file", results[url+"/file"], "redirects to an address with file://")
		refused(t, "to FTP", results[url+"/ftp"], "redirects to an address with ftp://")
		refused(t, "in circles", results[url+"/loop"], "redirects more than 5 times")
		if r := results[url+"/fine"]; string(r.Contents) != "here" {
			t.Errorf("to another path: %+v", r)
		}
		if url == secure.URL {
			refused(t, "from https to http", results[url+"/plain"], "redirects from https to http")
			continue
		}
		refused(t, "to credentials", results[url+"/user"], "with credentials in it")
		if r := results[url+"/plain"]; string(r.Contents) != "here" {
			t.Errorf("from http to http: %+v", r)
		}
		if strings.Contains(fmt.Sprint(results, told), "canary") {
			t.Errorf("credentials are told: %v %v", results, told)
		}
	}
	results, _ := fetched(t, plain+"/cloud", plain+"/cloud6", "http://169.254.169.254/")
	for address, r := range results {
		refused(t, address, r, "is a link-local address")
	}
	results, _ = fetched(t, secure.URL+"/fine")
	refused(t, "a server that nobody vouches for", results[secure.URL+"/fine"], "certificate")
}

// Who is interrupted does not wait.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			cancel()
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1<<10))
		}
	}()
	f := remote.New(func(string) {})
	url := "http://" + listener.Addr().String() + "/"
	refused(t, "an interrupted fetch", f.Fetch(ctx, []string{url})[url], "was cut short")
}
