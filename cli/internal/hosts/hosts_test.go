package hosts_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/hosts"
)

const short = 200 * time.Millisecond

// One that accepts and never says a word costs one deadline, however many lines ask.
func TestAHostThatNeverAnswersIsAskedOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int32
	var conns sync.Map
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conns.Store(c, true)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
	})
	h := hosts.Hosts{Deadline: short}
	began := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if host, silent := h.Silent(t.Context(), "https://"+l.Addr().String()+"/a/b.git"); !silent || host != l.Addr().String() {
				t.Errorf("%s silent: %v", host, silent)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took < short || took > 10*short {
		t.Errorf("twenty questions took %s", took)
	}
	if n := accepted.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// One with a full backlog does not even accept.
func TestAHostThatNeverAccepts(t *testing.T) {
	t.Parallel()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}
	for range 3 { // a backlog of 0 holds one connection or two
		if c, err := net.DialTimeout("tcp", addr.String(), short); err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	}
	for _, address := range []string{"http://" + addr.String(), "ssh://git@" + addr.String() + "/a.git"} {
		h := hosts.Hosts{Deadline: short}
		if _, silent := h.Silent(t.Context(), address); !silent {
			t.Errorf("%s answers", address)
		}
	}
}

// A refusal, an error and a name that is not there are answers: anyone who asks gets them
// at once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(refusing.Close)
	h := hosts.Hosts{Deadline: 30 * time.Second}
	for _, address := range []string{"https://" + closed + "/x", refusing.URL + "/a", "https://" + refusing.Listener.Addr().String(), "", "./src", "{{ .nuon.x }}/y", "file:///srv/x", "alpine"} {
		if host, silent := h.Silent(t.Context(), address); silent {
			t.Errorf("%q: %s is silent", address, host)
		}
	}
}
