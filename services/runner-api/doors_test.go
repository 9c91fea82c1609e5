package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/httpsig"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/services/internal/auth"
)

// intruder is a connection of somebody without a credential.
type intruder struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) intruder(t *testing.T) *intruder {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &intruder{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// begin sends the head of a request.
func (i *intruder) begin(method, path string, length int, headers ...string) {
	i.t.Helper()
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", method, path, length)
	for _, header := range headers {
		head += header + "\r\n"
	}
	if _, err := io.WriteString(i.conn, head+"\r\n"); err != nil {
		i.t.Error(err)
	}
}

func (i *intruder) answer() (status int, header http.Header) {
	i.t.Helper()
	resp, err := http.ReadResponse(i.in, nil)
	if err != nil {
		i.t.Errorf("no answer: %v", err)
		return 0, http.Header{}
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header
}

// forged are headers that look like a runner's.
func forged(t *testing.T, method, path string) []string {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, "http://x"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (httpsig.Signer{KeyID: "rnr_01k0a2b3c4d5e6f7g8h9jkmnpq", Key: key}).Sign(req, []byte("x"), time.Now()); err != nil {
		t.Fatal(err)
	}
	token, _ := auth.NewSecret(auth.SessionPrefix)
	headers := []string{"Authorization: Bearer " + token}
	for name, values := range req.Header {
		headers = append(headers, name+": "+values[0])
	}
	return headers
}

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Large bodies of strangers are refused before they are read: the answer comes
// although none of them is ever complete.
func TestAttackLargeBodiesWithoutProof(t *testing.T) {
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	const connections, sent = 12, 8 << 20
	path := "/jobs/job_01k0a2b3c4d5e6f7g8h9jkmnpq/result"
	before := heap()
	part := bytes.Repeat([]byte(" "), sent)
	intruders := make([]*intruder, connections)
	var group sync.WaitGroup
	for n := range intruders {
		intruders[n] = w.intruder(t)
		group.Go(func() {
			intruders[n].begin(http.MethodPut, path, 16<<20, forged(t, http.MethodPut, path)...)
			_, _ = intruders[n].conn.Write(part) // as far as it is taken
			if status, _ := intruders[n].answer(); status != http.StatusUnauthorized {
				t.Errorf("answered %d, want 401", status)
			}
		})
	}
	group.Wait()
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	a.claim("claim-after", 1, 0) // and who belongs here is served
}

// What is declared larger than its route takes is refused unread, also from a
// runner.
func TestAttackBodiesLargerThanTheirRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	intruder := w.intruder(t)
	intruder.begin(http.MethodPost, "/enrol", 1<<20, forged(t, http.MethodPost, "/enrol")...)
	if status, _ := intruder.answer(); status != http.StatusRequestEntityTooLarge {
		t.Errorf("an enrolment of 1 MiB was answered %d, want 413", status)
	}
	intruder = w.intruder(t)
	intruder.begin(http.MethodPost, "/stacks/phone-home", 1<<20)
	if status, _ := intruder.answer(); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a stack's outputs of 1 MiB were answered %d, want 413", status)
	}
	resp, err := a.ClaimJobsWithBodyWithResponse(t.Context(), "application/json", strings.NewReader(`{"claim_id": "`+strings.Repeat("x", 100<<10)+`"}`))
	must(t, resp, err, http.StatusRequestEntityTooLarge)
}

// A byte now and then holds nothing for long, and many such hold nobody up.
func TestAttackSlowBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.BodyGrace = time.Second })
	a := w.agent(w.org(), "install")
	begin := time.Now()
	var group sync.WaitGroup
	for range 20 {
		i := w.intruder(t)
		group.Go(func() {
			i.begin(http.MethodPost, "/enrol", 60<<10, forged(t, http.MethodPost, "/enrol")...)
			stop := make(chan struct{})
			var trickle sync.WaitGroup
			trickle.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond): // the attack itself
						_, _ = i.conn.Write([]byte(" "))
					}
				}
			})
			if status, _ := i.answer(); status != http.StatusRequestTimeout {
				t.Errorf("answered %d, want 408", status)
			}
			close(stop)
			trickle.Wait()
		})
	}
	a.claim("claim-meanwhile", 1, 0)
	group.Wait()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("slow bodies lived for %s", took)
	}
}

// What strangers may have in memory together is bounded. It is theirs alone:
// runners with a session are served meanwhile, and others can enrol afterwards.
func TestAttackManyBodiesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.BodyGrace, c.BodyMemoryMiB = 3*time.Second, 64 }) // 4 MiB for strangers
	o := w.org()
	a := w.agent(o, "install")
	part := bytes.Repeat([]byte(" "), 60<<10)
	const connections = 100
	var mu sync.Mutex
	answers := map[int]int{}
	var group sync.WaitGroup
	for range connections {
		i := w.intruder(t)
		group.Go(func() {
			i.begin(http.MethodPost, "/enrol", len(part)+1, forged(t, http.MethodPost, "/enrol")...)
			_, _ = i.conn.Write(part) // all but the last byte
			status, header := i.answer()
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
			if status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
	}
	a.claim("claim-meanwhile", 1, 0)
	group.Wait()
	if answers[http.StatusServiceUnavailable] == 0 || answers[http.StatusRequestTimeout] == 0 || answers[503]+answers[408] != connections {
		t.Errorf("answered %v, want some 503 (no memory) and some 408 (too slow)", answers)
	}
	w.machine(o, w.url).enrol(w.enrolment(o, w.runner(o, "build"), false))
}

// Guesses are slowed down; a caller with a good credential at the same address
// is served, and one whose session has ended is told so.
func TestAttackGuessedSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.org()
	a := w.agent(o, "install")
	old := w.machineWith(o, w.url, a.key)
	old.id = a.id
	old.transport.SetRunner(a.id)
	old.start()
	fresh := old.start() // voids the one before, and a's
	old.transport.SetSession(fresh.Token)
	limited := 0
	for range 400 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/chain/head", nil)
		if err != nil {
			t.Fatal(err)
		}
		token, _ := auth.NewSecret(auth.SessionPrefix)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "":
			limited++
		case resp.StatusCode != http.StatusUnauthorized:
			t.Fatalf("answered %s", resp.Status)
		}
	}
	if limited == 0 {
		t.Error("400 guesses were all looked at")
	}
	old.claim("claim-good", 1, 0)
	resp, err := a.ClaimJobsWithResponse(t.Context(), runnerapi.ClaimRequest{ClaimID: "claim-void", Slots: 1, Switch: runnerapi.SwitchRun})
	refused(t, resp, err, http.StatusUnauthorized, "session_overtaken")
}

func TestTwoCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intruder(t)
	i.begin(http.MethodGet, "/chain/head", 0, "Authorization: Bearer a", "Authorization: Bearer b")
	if status, _ := i.answer(); status != http.StatusUnprocessableEntity {
		t.Errorf("answered %d, want 422", status)
	}
}
