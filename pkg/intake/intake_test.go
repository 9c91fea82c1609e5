package intake_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/intake"
)

// patience is how long a test waits for an event.
const patience = 20 * time.Second

// serve runs a server with real connections; most bounds them.
func serve(t *testing.T, most int, handler http.Handler) (address string) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := intake.Limit(plain, most)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	listener.Watch(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("server ended: %v", err)
		}
	})
	return plain.Addr().String()
}

// reading is a handler that opens the body on terms and reads it.
func reading(terms intake.Terms) http.Handler {
	return intake.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := intake.BodyOf(r.Context()).Open(terms)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(r.Body)
		}
		if status, text := intake.Status(err); status != 0 {
			http.Error(w, text, status)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%d bytes", len(body))
	}))
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func post(t *testing.T, conn net.Conn, length int) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
}

func answer(t *testing.T, conn net.Conn) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var quick = intake.Pace{Grace: 200 * time.Millisecond, BytesPerSecond: 1 << 10, Deadline: time.Second}

func TestBodies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		terms    intake.Terms
		length   int
		send     string
		status   int
		answered string
	}{
		{name: "a body within its terms", terms: intake.Terms{MaxBytes: 10, Pace: quick}, length: 5, send: "hello", status: 200, answered: "5 bytes"},
		{name: "a body of exactly the limit", terms: intake.Terms{MaxBytes: 5, Pace: quick}, length: 5, send: "hello", status: 200, answered: "5 bytes"},
		{name: "declared too large: refused before a byte came", terms: intake.Terms{MaxBytes: 10, Pace: quick}, length: 1 << 30, status: 413},
		{name: "announced and never sent", terms: intake.Terms{MaxBytes: 10, Pace: quick}, length: 5, status: 408},
		{name: "half of it, then nothing", terms: intake.Terms{MaxBytes: 10, Pace: quick}, length: 5, send: "he", status: 408},
		{name: "no memory for it", terms: intake.Terms{MaxBytes: 10, Pace: quick, Memory: intake.NewMemory(4, 4)}, length: 5, send: "hello", status: 503},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, serve(t, 0, reading(tt.terms)))
			post(t, conn, tt.length)
			if _, err := io.WriteString(conn, tt.send); err != nil {
				t.Fatal(err)
			}
			status, body := answer(t, conn)
			if status != tt.status || (tt.answered != "" && body != tt.answered) {
				t.Errorf("answered %d %q, want %d %q", status, body, tt.status, tt.answered)
			}
		})
	}
}

// Chunks have no declared length: they are counted as they come.
func TestBodiesWithoutALength(t *testing.T) {
	t.Parallel()
	memory := intake.NewMemory(1<<20, 1<<20)
	address := serve(t, 0, reading(intake.Terms{MaxBytes: 100, Pace: quick, Memory: memory}))
	for size, want := range map[int]int{100: 200, 101: 413} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: answered %d, want %d", size, resp.StatusCode, want)
		}
	}
	if n := memory.InUse(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// A byte now and then, for as long as it takes: the pace ends it.
func TestATrickleIsEnded(t *testing.T) {
	t.Parallel()
	conn := dial(t, serve(t, 0, reading(intake.Terms{MaxBytes: 1 << 20, Pace: quick})))
	post(t, conn, 1<<20)
	begin := time.Now()
	stop := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond): // the attack itself: a byte now and then
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}
	})
	status, _ := answer(t, conn)
	close(stop)
	sender.Wait()
	if took := time.Since(begin); status != http.StatusRequestTimeout || took > patience/2 {
		t.Errorf("answered %d after %s", status, took)
	}
}

// A stream of any length goes on as long as it keeps the pace, and the time
// that its handler takes is not its own.
func TestAStreamWithAPauseOfItsHandlerGoesOn(t *testing.T) {
	t.Parallel()
	terms := intake.Terms{MaxBytes: 1 << 30, Pace: intake.Pace{Grace: 300 * time.Millisecond, BytesPerSecond: 1 << 10}}
	address := serve(t, 0, intake.WithTerms(terms, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		half := make([]byte, 4<<20)
		if _, err := io.ReadFull(r.Body, half); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		time.Sleep(2 * terms.Pace.Grace) // a slow disk
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})))
	resp, err := http.Post("http://"+address, "application/octet-stream", bytes.NewReader(make([]byte, 8<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != fmt.Sprint(4<<20, nil) {
		t.Errorf("answered %q (%v)", got, err)
	}
}

func TestALockedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	address := serve(t, 0, intake.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	})))
	conn := dial(t, address)
	post(t, conn, 100) // and sends nothing: the answer does not wait for it
	if status, _ := answer(t, conn); status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
	if err := <-failed; !errors.Is(err, intake.ErrLocked) {
		t.Errorf("read: %v, want ErrLocked", err)
	}
}

// One holder does not take the share of others, and memory comes back.
// A proxy's transport may still wait for the body when the handler has
// answered: that neither holds up the end nor keeps the connection open.
func TestABodyThatIsStillReadWhenTheHandlerEnds(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	address := serve(t, 10, intake.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := intake.BodyOf(r.Context()).Open(intake.Terms{MaxBytes: 1 << 20, Pace: intake.Pace{Grace: time.Hour}}); err != nil {
			t.Errorf("open: %v", err)
		}
		reading := make(chan struct{})
		go func() {
			_, err := io.ReadFull(r.Body, make([]byte, 1))
			close(reading)
			if err == nil {
				_, err = io.ReadAll(r.Body)
			}
			ended <- err
		}()
		<-reading
		w.WriteHeader(http.StatusUnauthorized)
	})))
	conn := dial(t, address)
	post(t, conn, 100_000)
	if _, err := io.WriteString(conn, "b"); err != nil {
		t.Fatal(err)
	}
	if status, _ := answer(t, conn); status != http.StatusUnauthorized {
		t.Errorf("answered %d, want 401", status)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the body ended without an error")
		}
	case <-time.After(patience):
		t.Error("the body is still read after the handler has ended")
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection stays open: %v", err)
	}
}

func TestMemoryIsShared(t *testing.T) {
	t.Parallel()
	memory := intake.NewMemory(10<<10, 4<<10)
	hold, held := make(chan struct{}), make(chan struct{}, 8)
	address := serve(t, 0, intake.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := intake.BodyOf(r.Context())
		err := body.Open(intake.Terms{MaxBytes: 1 << 20, Pace: intake.Pace{Grace: patience}, Memory: memory, Holder: r.Header.Get("Holder")})
		if err == nil {
			_, err = io.ReadAll(r.Body)
		}
		if status, text := intake.Status(err); status != 0 {
			http.Error(w, text, status)
			return
		}
		if r.Header.Get("Hold") != "" {
			held <- struct{}{}
			<-hold
		}
	})))
	send := func(holder string, size int, keep string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("Holder", holder)
		req.Header.Set("Hold", keep)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	var group sync.WaitGroup
	for _, holder := range []string{"a", "b"} {
		group.Go(func() {
			if got := send(holder, 4<<10, "yes"); got != http.StatusOK {
				t.Errorf("%s: answered %d", holder, got)
			}
		})
	}
	<-held
	<-held
	for _, step := range []struct {
		holder string
		size   int
		want   int
	}{
		{"a", 1, http.StatusServiceUnavailable}, // its share is taken
		{"c", 2 << 10, http.StatusOK},           // another's is not
		{"c", 3 << 10, http.StatusServiceUnavailable},
	} {
		if got := send(step.holder, step.size, ""); got != step.want {
			t.Errorf("%d bytes of %s: answered %d, want %d", step.size, step.holder, got, step.want)
		}
	}
	close(hold)
	group.Wait()
	if got := send("a", 4<<10, ""); got != http.StatusOK {
		t.Errorf("afterwards: answered %d", got)
	}
}

// Idle connections and halves of headers make room; a request that is being
// answered does not.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	const most = 4
	holding, release := make(chan struct{}), make(chan struct{})
	address := serve(t, most, intake.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			close(holding)
			<-release
		}
		fmt.Fprint(w, "served")
	})))
	poll := dial(t, address)
	fmt.Fprint(poll, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
	<-holding
	for range 5 * most {
		conn := dial(t, address)
		fmt.Fprint(conn, "GET / HT") // and never more
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("a client is locked out: %v", err)
	}
	resp.Body.Close()
	close(release)
	if status, _ := answer(t, poll); status != http.StatusOK {
		t.Errorf("the held request was answered %d", status)
	}
}
