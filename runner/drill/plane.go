package drill

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// patience is how long the plane waits for the runner to do something.
const patience = 60 * time.Second

// plane is a control plane in the attacker's hands: as much of runner-api, log-ingest and
// the registry as a runner needs to be attacked. It believes everything and checks nothing.
type plane struct {
	url                        string
	orgID, installID, runnerID string
	signer                     signer

	mu        sync.Mutex
	changed   chan struct{}
	machine   ed25519.PublicKey
	recipient string // what secrets are sealed to
	queue     []runnerapi.Assignment
	claimed   map[string][]runnerapi.Assignment // by claim
	results   map[string]runnerapi.ResultReport
	plans     map[string]runnerapi.Plan
	runs      []jobspec.Run
	settings  *runnerapi.SettingsVersion
	asked     int // requests for settings
	sessions  int
	claims    int // of the newest session
	registry  string
	logs      string
	redirect  string               // where questions for work are sent, "" for nowhere
	head      *runnerapi.ChainHead // a lie about where the chain ends
	chain     []runnerapi.ChainRecord
	streams   map[string]*logship.Head
	received  strings.Builder // every text that left the machine
	blobs     map[string]served
	fetched   map[string]int
}

// signer is a key and the id under which it is said to be known.
type signer struct {
	id  string
	key ed25519.PrivateKey
}

func newSigner(name string) (signer, ed25519.PublicKey, error) {
	public, private, err := capsule.GenerateKey()
	if name == "" {
		name = capsule.KeyID(public)
	}
	return signer{id: name, key: private}, public, err
}

// served is what the registry gives for a path.
type served struct {
	kind string // the media type
	body []byte
	// endless goes on after body, for as long as somebody reads.
	endless bool
}

// startPlane listens on a free port of the loopback. stop closes it.
func startPlane(ctx context.Context, s signer) (p *plane, stop func(), err error) {
	p = &plane{
		orgID: id.New(id.Org), installID: id.New(id.Install), runnerID: id.New(id.Runner), signer: s,
		changed: make(chan struct{}), claimed: map[string][]runnerapi.Assignment{}, results: map[string]runnerapi.ResultReport{},
		plans: map[string]runnerapi.Plan{}, streams: map[string]*logship.Head{}, blobs: map[string]served{}, fetched: map[string]int{},
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen on loopback: %w", err)
	}
	p.url = "http://" + listener.Addr().String()
	p.registry, p.logs = listener.Addr().String(), p.url
	server := &http.Server{Handler: p.routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with the listener
	return p, func() { _ = server.Close() }, nil
}

func (p *plane) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /enrol", p.enrol)
	mux.HandleFunc("POST /sessions", p.openSession)
	mux.HandleFunc("POST /jobs/claim", p.claim)
	mux.HandleFunc("POST /leases/renew", p.renew)
	mux.HandleFunc("PUT /jobs/{job}/plan", p.putPlan)
	mux.HandleFunc("PUT /jobs/{job}/result", p.putResult)
	mux.HandleFunc("PUT /runs/{run}", p.putRun)
	mux.HandleFunc("POST /registry-token", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, runnerapi.RegistryToken{Token: "brg_drill", ExpiresAt: time.Now().Add(time.Hour)})
	})
	mux.HandleFunc("GET /settings", p.getSettings)
	mux.HandleFunc("PUT /consents", p.noted)
	mux.HandleFunc("PUT /samples", p.noted)
	mux.HandleFunc("GET /chain/head", p.chainHead)
	mux.HandleFunc("GET /chain", p.getChain)
	mux.HandleFunc("POST /chain", p.appendChain)
	mux.HandleFunc("POST /streams/{stream}/records", p.appendLog)
	mux.HandleFunc("POST /streams/{stream}/finish", p.finishLog)
	mux.HandleFunc("GET /v2/", p.artifact)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "not_found") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && !strings.Contains(r.URL.Path, "/records") { // logs are unpacked first
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				refuse(w, http.StatusBadRequest, "bad")
				return
			}
			p.note(string(raw))
			r.Body = io.NopCloser(strings.NewReader(string(raw)))
		}
		mux.ServeHTTP(w, r)
	})
}

// note keeps what left the machine.
func (p *plane) note(text string) {
	p.change(func() { p.received.WriteString(text); p.received.WriteByte('\n') })
}

// saw tells whether a text left the machine.
func (p *plane) saw(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.received.String(), text)
}

// change makes a change that others may wait for.
func (p *plane) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// until waits for a condition on the plane, which holds p.mu meanwhile.
func (p *plane) until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %s for %s", patience, what))
	defer cancel()
	for {
		p.mu.Lock()
		ok, changed := holds(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *plane) enrol(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.Enrolment](r)
	key, err := capsule.ParsePublicKey(in.PublicKey)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_key")
		return
	}
	p.change(func() { p.machine, p.recipient = key, in.SealRecipient })
	answer(w, runnerapi.Identity{RunnerID: p.runnerID, OrgID: p.orgID, InstallID: &p.installID, Kind: runnerapi.RunnerKindInstall})
}

func (p *plane) openSession(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.SessionRequest](r)
	out := runnerapi.Session{SessionID: id.New(id.Session), LeaseSeconds: 60, RenewSeconds: 1, Jobs: []runnerapi.ResumedJob{}}
	for _, a := range in.Running {
		out.Jobs = append(out.Jobs, runnerapi.ResumedJob{JobID: a.JobID, Attempt: a.Attempt, State: runnerapi.ResumedStateResumed})
	}
	p.change(func() {
		p.sessions++
		p.claims = 0
		out.Epoch, out.Token = int64(p.sessions), fmt.Sprintf("brs_drill_%d", p.sessions)
		out.Registry, out.LogURL = runnerapi.Registry{Host: p.registry, PlainHTTP: true}, p.logs
	})
	answer(w, out)
}

func (p *plane) claim(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ClaimRequest](r)
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	elsewhere := ""
	p.change(func() { p.claims++; elsewhere = p.redirect })
	if elsewhere != "" {
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	for {
		p.mu.Lock()
		jobs, again := p.claimed[in.ClaimID]
		if n := min(in.Slots, len(p.queue)); !again && n > 0 {
			jobs, p.queue = p.queue[:n:n], p.queue[n:]
			p.claimed[in.ClaimID] = jobs
		}
		changed := p.changed
		p.mu.Unlock()
		if len(jobs) > 0 {
			answer(w, runnerapi.Claim{Jobs: jobs})
			return
		}
		select {
		case <-ctx.Done():
			answer(w, runnerapi.Claim{Jobs: []runnerapi.Assignment{}})
			return
		case <-changed:
		}
	}
}

func (p *plane) renew(w http.ResponseWriter, r *http.Request) {
	out := runnerapi.Renewal{Leases: []runnerapi.RenewedLease{}}
	for _, a := range read[runnerapi.RenewRequest](r).Leases {
		out.Leases = append(out.Leases, runnerapi.RenewedLease{JobID: a.JobID, Attempt: a.Attempt, Answer: runnerapi.LeaseAnswerOk})
	}
	answer(w, out)
}

func (p *plane) putPlan(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.Plan](r)
	p.change(func() { p.plans[r.PathValue("job")] = in })
	w.WriteHeader(http.StatusNoContent)
}

func (p *plane) putResult(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ResultReport](r)
	p.change(func() { p.results[r.PathValue("job")] = in })
	answer(w, runnerapi.ResultAccepted{State: runnerapi.JobStateSucceeded})
}

func (p *plane) putRun(w http.ResponseWriter, r *http.Request) {
	in := read[jobspec.Run](r)
	stream, token := id.New(id.Stream), "blt_drill"
	p.change(func() { p.runs = append(p.runs, in) })
	answer(w, runnerapi.RunRecorded{RunID: r.PathValue("run"), StreamID: &stream, LogToken: &token})
}

func (p *plane) noted(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func (p *plane) getSettings(w http.ResponseWriter, r *http.Request) {
	var after int64
	_, _ = fmt.Sscan(r.URL.Query().Get("after_version"), &after) // 0 without one
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	p.change(func() { p.asked++ })
	for {
		p.mu.Lock()
		s, changed := p.settings, p.changed
		p.mu.Unlock()
		if s != nil {
			p.change(func() { p.settings = nil }) // each once, also a lower version: it is hostile
			answer(w, s)
			return
		}
		select {
		case <-ctx.Done():
			w.WriteHeader(http.StatusNoContent)
			return
		case <-changed:
		}
	}
}

func (p *plane) chainHead(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != nil {
		answer(w, p.head)
		return
	}
	answer(w, p.end())
}

// end is where the copy of the chain ends. p.mu is held.
func (p *plane) end() runnerapi.ChainHead {
	if len(p.chain) == 0 {
		return runnerapi.ChainHead{}
	}
	last := p.chain[len(p.chain)-1]
	return runnerapi.ChainHead{Seq: last.Seq, Hash: capsule.DigestBytes(last.Body)}
}

func (p *plane) getChain(w http.ResponseWriter, r *http.Request) {
	var after int64
	_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after) // 0 without one
	out := runnerapi.ChainRecords{Records: []runnerapi.ChainRecord{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, record := range p.chain {
		if record.Seq > after && len(out.Records) < 100 {
			out.Records = append(out.Records, record)
		}
	}
	answer(w, out)
}

func (p *plane) appendChain(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ChainAppend](r)
	var head runnerapi.ChainHead
	p.change(func() {
		for _, record := range in.Records {
			if record.Seq == int64(len(p.chain))+1 {
				p.chain = append(p.chain, record)
			}
		}
		head = p.end()
	})
	answer(w, head)
}

func (p *plane) appendLog(w http.ResponseWriter, r *http.Request) {
	batch, err := logBatch(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad")
		return
	}
	var head logship.Head
	var texts []string
	p.change(func() {
		stream := p.stream(r.PathValue("stream"))
		if decision, _ := stream.Decide(batch); decision.Verdict == logship.Extends {
			for rest := decision.New; len(rest) > 0; {
				var frame []byte
				if frame, rest, err = logship.CutFrame(rest); err != nil {
					return
				}
				texts = append(texts, logship.DecodeFrame(frame).Text)
				*stream, _, _ = stream.Advance(frame, 0)
			}
		}
		head = *stream
	})
	p.note(strings.Join(texts, "\n"))
	answer(w, map[string]any{"next_seq": head.NextSeq, "hash": head.Hash.String()})
}

// stream is where a log stands. p.mu is held.
func (p *plane) stream(name string) *logship.Head {
	if p.streams[name] == nil {
		start := logship.Start()
		p.streams[name] = &start
	}
	return p.streams[name]
}

func logBatch(r *http.Request) (b logship.Batch, err error) {
	raw, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "zstd" {
		var d *zstd.Decoder
		if d, err = zstd.NewReader(nil); err == nil {
			defer d.Close()
			raw, err = d.DecodeAll(raw, nil)
		}
	}
	if err != nil {
		return b, err
	}
	b.Frames = raw
	if _, err := fmt.Sscan(r.URL.Query().Get("first_seq"), &b.FirstSeq); err != nil {
		return b, err
	}
	b.PrevHash, err = logship.ParseHash(r.URL.Query().Get("prev_hash"))
	return b, err
}

func (p *plane) finishLog(w http.ResponseWriter, r *http.Request) {
	var end struct {
		Lines int64 `json:"total_lines"`
	}
	if err := json.NewDecoder(r.Body).Decode(&end); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, "bad")
		return
	}
	answer(w, map[string]any{"total_lines": end.Lines})
}

// artifact is the registry.
func (p *plane) artifact(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s, found := p.blobs[r.URL.Path]
	p.fetched[r.URL.Path]++
	p.mu.Unlock()
	if r.URL.Path == "/v2/" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if !found {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN")
		return
	}
	w.Header().Set("Content-Type", s.kind)
	if !s.endless {
		w.Header().Set("Content-Length", fmt.Sprint(len(s.body)))
	}
	if r.Method == http.MethodHead {
		return
	}
	_, err := w.Write(s.body)
	for chunk := make([]byte, 1<<16); err == nil && s.endless && r.Context().Err() == nil; {
		_, err = w.Write(chunk)
	}
}

func read[T any](r *http.Request) T {
	var v T
	_ = json.NewDecoder(r.Body).Decode(&v) // it believes everything, nothing too
	return v
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who went away is not told
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code})
}
