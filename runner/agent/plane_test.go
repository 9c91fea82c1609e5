package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// plane answers the calls of one runner: as much of runner-api and log-ingest as
// these tests need, and what no real one can be asked to do (lose an answer, be
// away). The whole is tested against the real services in services/e2e.
type plane struct {
	*httptest.Server
	kind      runnerapi.RunnerKind
	runnerID  string
	orgID     string
	installID string

	followed  atomic.Int64 // times that settings were asked for
	mu        sync.Mutex
	changed   chan struct{}
	away      bool
	dropped   int // claims whose answers are still to be lost
	queue     []given
	signer    dispatch // of orders
	claims    map[string][]runnerapi.Assignment
	answers   map[string]runnerapi.LeaseAnswer   // by job; ok when absent
	told      map[string][]runnerapi.JobProgress // by job, in the order of the renewals
	renewals  int
	older     bool // an older control plane: it refuses progress
	logsAway  bool // log-ingest takes no lines
	plansAway bool // no plan is taken
	sessions  []runnerapi.SessionRequest
	enrolled  []runnerapi.Enrolment
	homes     []runnerapi.PhoneHome
	asked     []runnerapi.ClaimRequest
	plans     map[string]runnerapi.Plan
	consents  []runnerapi.Consent // as they were told last
	results   map[string][]runnerapi.ResultReport
	runs      map[string][]jobspec.Run
	remedied  map[string][]jobspec.Remediation // by id, as they were told
	samples   []jobspec.Sample
	// olderThanSamples is a control plane that does not know them.
	olderThanSamples bool
	hold             string // what one that asks is answered
	streams          map[string]*stream
	state            *runnerapi.State
	refuses          int // so many states, the next ones
	lock             *runnerapi.LockRequest
	settings         *runnerapi.SettingsVersion
	chain            []runnerapi.ChainRecord
	registry         string // of the org, host:port; one where nobody is when empty
	// accept has the runner accept the script of a run before it is given out.
	accept   func(jobspec.Script)
	requests int
	served   map[string]int // requests by route

	// sessionAnswers are those of the requests for sessions, in their order: "lost",
	// a code, or "" for a session.
	sessionAnswers []string
	overtake       int // claims that are told that another process has the session
	overtakeHead   int // questions for the chain's head that are told the same
	unknown        int // claims that are told that their session is not known
	over           int // sessions whose agents were stopped: a claim of theirs that is still read gets nothing
	disputed       *runnerapi.Dispute
}

type stream struct {
	head     logship.Head
	heads    []logship.Head // after each line
	lines    []string
	finished bool
}

func newPlane(t *testing.T, kind runnerapi.RunnerKind) *plane {
	t.Helper()
	p := &plane{
		kind: kind, runnerID: id.New(id.Runner), orgID: id.New(id.Org), changed: make(chan struct{}),
		claims: map[string][]runnerapi.Assignment{}, answers: map[string]runnerapi.LeaseAnswer{}, told: map[string][]runnerapi.JobProgress{},
		plans: map[string]runnerapi.Plan{}, results: map[string][]runnerapi.ResultReport{},
		runs: map[string][]jobspec.Run{}, remedied: map[string][]jobspec.Remediation{}, streams: map[string]*stream{}, served: map[string]int{},
	}
	if kind == runnerapi.RunnerKindInstall {
		p.installID = id.New(id.Install)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /enrol", p.enrol)
	mux.HandleFunc("POST /stacks/phone-home", p.phoneHome)
	mux.HandleFunc("POST /sessions", p.openSession)
	mux.HandleFunc("POST /jobs/claim", p.claim)
	mux.HandleFunc("POST /leases/renew", p.renew)
	mux.HandleFunc("PUT /jobs/{job}/plan", p.putPlan)
	mux.HandleFunc("PUT /jobs/{job}/result", p.putResult)
	mux.HandleFunc("PUT /runs/{run}", p.putRun)
	mux.HandleFunc("PUT /samples", p.putSamples)
	mux.HandleFunc("PUT /remediations/{remediation}", p.putRemediation)
	mux.HandleFunc("POST /registry-token", p.registryToken)
	mux.HandleFunc("GET /settings", p.getSettings)
	mux.HandleFunc("GET /states/{resource}", p.getState)
	mux.HandleFunc("PUT /states/{resource}", p.putState)
	mux.HandleFunc("POST /states/{resource}/lock", p.lockState)
	mux.HandleFunc("DELETE /states/{resource}/lock", p.unlockState)
	mux.HandleFunc("PUT /consents", p.putConsents)
	mux.HandleFunc("GET /chain/head", p.chainHead)
	mux.HandleFunc("POST /chain", p.appendChain)
	mux.HandleFunc("GET /chain", p.getChain)
	mux.HandleFunc("POST /streams/{stream}/records", p.appendLog)
	mux.HandleFunc("POST /streams/{stream}/finish", p.finishLog)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests++
		away := p.away
		p.mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
		p.mu.Lock()
		p.served[r.Pattern]++
		p.mu.Unlock()
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// change makes a change that others may wait for.
func (p *plane) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// patience is how long tests wait for what an idle machine does within seconds.
const patience = 3 * time.Minute

// until waits for a condition on the plane.
func (p *plane) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		ok, changed := holds(), p.changed
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// given is a job on its way to the runner, before its order is signed.
type given struct {
	runnerapi.Assignment

	Spec jobspec.Spec
	// Text is sent in place of Spec.
	Text []byte
	// Order is what is signed; an empty machine or digest of the spec is filled
	// with the right one.
	Order capsule.Order
	// Unsigned: no order goes with it.
	Unsigned bool
	// Signer is the plane's unless the test takes another.
	Signer dispatch
}

// assignment signs what was given. p.mu is held.
func (p *plane) assignment(g given) runnerapi.Assignment {
	a := g.Assignment
	a.Spec = g.Text
	if a.Spec == nil {
		text, err := json.Marshal(g.Spec)
		if err != nil {
			panic(err)
		}
		a.Spec = text
	}
	if g.Unsigned || a.Order != nil {
		return a
	}
	if g.Order.SpecDigest == "" {
		g.Order.SpecDigest = capsule.DigestBytes(a.Spec)
	}
	if g.Order.MachineKeyID == "" {
		key, err := capsule.ParsePublicKey(p.enrolled[len(p.enrolled)-1].PublicKey)
		if err != nil {
			panic(err)
		}
		g.Order.MachineKeyID = capsule.KeyID(key)
	}
	env, err := capsule.Sign(g.Signer.key, g.Signer.id, capsule.OrderType, g.Order)
	if err != nil {
		panic(err)
	}
	a.Order = &env
	return a
}

// give queues a job with its order, after a last edit by the test, and returns
// its id.
func (p *plane) give(spec jobspec.Spec, with ...func(*given)) string {
	spec.Version, spec.OrgID, spec.InstallID = jobspec.Version, p.orgID, p.installID
	if spec.JobID == "" {
		spec.JobID = id.New(id.Job)
	}
	if spec.TimeoutSeconds == 0 {
		spec.TimeoutSeconds = 60
	}
	if p.accept != nil && spec.Kind == jobspec.KindAction && spec.Operation == jobspec.OperationRun {
		p.accept(jobspec.Script{Action: *spec.Action, TimeoutSeconds: spec.TimeoutSeconds})
	}
	now := time.Now()
	g := given{
		Assignment: runnerapi.Assignment{
			JobID: spec.JobID, Attempt: 1, Operation: string(spec.Operation), StreamID: id.New(id.Stream),
			LogToken: "blt_" + strings.Repeat("x", 39) + spec.JobID[len(spec.JobID)-4:], LeaseExpiresAt: now.Add(time.Minute),
		},
		Spec: spec, Signer: p.signer,
		Order: capsule.Order{
			OrgID: p.orgID, InstallID: p.installID, RunnerID: p.runnerID, JobID: spec.JobID, Kind: string(spec.Kind), Operation: string(spec.Operation),
			ChangeID: spec.ChangeID, BuildID: spec.BuildID, OriginID: spec.ChangeID, Starts: capsule.StartsOfReading,
			IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		},
	}
	if spec.Resource != nil {
		g.Order.ResourceID = spec.Resource.ID
	}
	if len(spec.State) > 0 {
		g.Order.StateDigest = capsule.DigestBytes(spec.State)
	}
	for _, change := range with {
		change(&g)
	}
	p.change(func() { p.queue = append(p.queue, g) })
	return spec.JobID
}

// result waits for the report of a job.
func (p *plane) result(t *testing.T, job string) jobspec.Result {
	t.Helper()
	p.until(t, "the result of "+job, func() bool { return len(p.results[job]) > 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.results[job][0].Result
}

// log waits for the finished log of a job and returns its lines.
func (p *plane) log(t *testing.T, streamID string) []string {
	t.Helper()
	p.until(t, "the end of the log", func() bool { s := p.streams[streamID]; return s != nil && s.finished })
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.streams[streamID].lines)
}

func (p *plane) streamOf(job string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, jobs := range p.claims {
		for _, a := range jobs {
			if a.JobID == job {
				return a.StreamID
			}
		}
	}
	return ""
}

func (p *plane) enrol(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.Enrolment](r)
	p.change(func() { p.enrolled = append(p.enrolled, in) })
	out := runnerapi.Identity{RunnerID: p.runnerID, OrgID: p.orgID, Kind: p.kind}
	if p.installID != "" {
		out.InstallID = &p.installID
	}
	answer(w, http.StatusOK, out)
}

func (p *plane) openSession(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.SessionRequest](r)
	out := runnerapi.Session{
		SessionID: id.New(id.Session), LeaseSeconds: 60, RenewSeconds: 1,
		Jobs: []runnerapi.ResumedJob{}, Registry: runnerapi.Registry{Host: "127.0.0.1:1", PlainHTTP: true}, LogURL: p.URL,
	}
	for _, a := range in.Running {
		out.Jobs = append(out.Jobs, runnerapi.ResumedJob{JobID: a.JobID, Attempt: a.Attempt, State: runnerapi.ResumedStateResumed})
	}
	p.change(func() {
		if p.registry != "" {
			out.Registry.Host = p.registry
		}
		p.sessions = append(p.sessions, in)
		out.Epoch, out.Disputed = int64(len(p.sessions)), p.disputed
		out.Token = p.sessionToken()
	})
	switch code := p.next(); code {
	case "":
	case "lost":
		panic(http.ErrAbortHandler)
	case "opening_over":
		refuse(w, http.StatusConflict, code, "over")
		return
	default:
		refuse(w, http.StatusUnauthorized, code, "no")
		return
	}
	answer(w, http.StatusOK, out)
}

// sessionToken is the token of the newest session. It needs p.mu.
func (p *plane) sessionToken() string { return fmt.Sprintf("brs_token_%d", len(p.sessions)) }

func (p *plane) claim(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ClaimRequest](r)
	p.change(func() { p.asked = append(p.asked, in) })
	wait, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	for {
		if p.ends(w) {
			return
		}
		p.mu.Lock()
		if p.over == len(p.sessions) || r.Header.Get("Authorization") != "Bearer "+p.sessionToken() { // of an agent that is gone: it takes nothing from the next one
			p.mu.Unlock()
			refuse(w, http.StatusUnauthorized, "session_overtaken", "another session was opened")
			return
		}
		jobs, again := p.claims[in.ClaimID]
		if n := min(in.Slots, len(p.queue)); !again && n > 0 {
			jobs = nil
			for _, g := range p.queue[:n] {
				jobs = append(jobs, p.assignment(g))
			}
			p.queue = p.queue[n:]
			p.claims[in.ClaimID] = jobs
		}
		lose := len(jobs) > 0 && p.dropped > 0
		if lose {
			p.dropped--
		}
		changed := p.changed
		p.mu.Unlock()
		switch {
		case lose:
			panic(http.ErrAbortHandler)
		case len(jobs) > 0:
			answer(w, http.StatusOK, runnerapi.Claim{Jobs: jobs})
			return
		}
		select {
		case <-wait.Done():
			answer(w, http.StatusOK, runnerapi.Claim{Jobs: []runnerapi.Assignment{}})
			return
		case <-changed:
		}
	}
}

func (p *plane) renew(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.RenewRequest](r)
	out := runnerapi.Renewal{Leases: []runnerapi.RenewedLease{}}
	if p.older && len(in.Progress) > 0 {
		refuse(w, http.StatusUnprocessableEntity, "invalid", "property progress is unsupported")
		return
	}
	p.change(func() { p.renewals++ })
	p.mu.Lock()
	for _, told := range in.Progress {
		p.told[told.JobID] = append(p.told[told.JobID], told)
	}
	for _, a := range in.Leases {
		said := p.answers[a.JobID]
		if said == "" {
			said = runnerapi.LeaseAnswerOk
		}
		out.Leases = append(out.Leases, runnerapi.RenewedLease{JobID: a.JobID, Attempt: a.Attempt, Answer: said})
	}
	p.mu.Unlock()
	answer(w, http.StatusOK, out)
}

func (p *plane) putPlan(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.Plan](r)
	p.mu.Lock()
	away := p.plansAway
	p.mu.Unlock()
	if away {
		p.change(func() { p.served["plan"]++ })
		refuse(w, http.StatusServiceUnavailable, "away", "away")
		return
	}
	p.change(func() { p.plans[r.PathValue("job")] = in })
	w.WriteHeader(http.StatusNoContent)
}

func (p *plane) putResult(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ResultReport](r)
	p.change(func() { p.results[r.PathValue("job")] = append(p.results[r.PathValue("job")], in) })
	answer(w, http.StatusOK, runnerapi.ResultAccepted{State: runnerapi.JobStateSucceeded})
}

func (p *plane) putRun(w http.ResponseWriter, r *http.Request) {
	in := read[jobspec.Run](r)
	streamID, token := "str_"+strings.TrimPrefix(r.PathValue("run"), "arn_"), "blt_of_a_run"
	p.change(func() {
		key := jobspec.RunKey(in.Action, in.ScheduledAt)
		p.runs[key] = append(p.runs[key], in)
	})
	answer(w, http.StatusOK, runnerapi.RunRecorded{RunID: r.PathValue("run"), StreamID: &streamID, LogToken: &token})
}

func (p *plane) putSamples(w http.ResponseWriter, r *http.Request) {
	in := read[jobspec.Samples](r)
	if p.olderThanSamples {
		answer(w, http.StatusNotFound, map[string]any{"status": 404, "code": "no_route", "detail": "there is no route /samples"})
		return
	}
	p.change(func() { p.samples = append(p.samples, in.Samples...) })
	w.WriteHeader(http.StatusNoContent)
}

func (p *plane) putRemediation(w http.ResponseWriter, r *http.Request) {
	in := read[jobspec.Remediation](r)
	out := runnerapi.RemediationRecorded{}
	p.change(func() {
		id := r.PathValue("remediation")
		p.remedied[id] = append(p.remedied[id], in)
		if in.Asks && p.hold != "" {
			hold := p.hold
			out.Hold = &hold
		}
	})
	answer(w, http.StatusOK, out)
}

func (p *plane) registryToken(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, runnerapi.RegistryToken{Token: "brg_token", ExpiresAt: time.Now().Add(time.Hour)})
}

func (p *plane) getSettings(w http.ResponseWriter, r *http.Request) {
	p.followed.Add(1)
	var after int64
	_, _ = fmt.Sscan(r.URL.Query().Get("after_version"), &after)
	wait, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	for {
		p.mu.Lock()
		s, changed := p.settings, p.changed
		p.mu.Unlock()
		if s != nil && s.Version > after {
			answer(w, http.StatusOK, s)
			return
		}
		select {
		case <-wait.Done():
			w.WriteHeader(http.StatusNoContent)
			return
		case <-changed:
		}
	}
}

func (p *plane) getState(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, http.StatusOK, p.state)
}

func (p *plane) putState(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.StateWrite](r)
	p.mu.Lock()
	held := p.lock != nil && p.lock.LockID == in.LockID
	if p.refuses > 0 {
		p.refuses--
		held = false
	}
	p.mu.Unlock()
	if !held {
		refuse(w, http.StatusConflict, "state_refused", "the state is not locked")
		return
	}
	p.change(func() {
		p.state = &runnerapi.State{StateID: "stv", Serial: in.Serial, Lineage: in.Lineage, Digest: in.Digest, Body: in.Body}
	})
	answer(w, http.StatusOK, runnerapi.StateStored{StateID: "stv", Serial: in.Serial})
}

func (p *plane) lockState(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.LockRequest](r)
	p.change(func() { p.lock = &in })
	answer(w, http.StatusOK, runnerapi.Lock{LockID: in.LockID, JobID: in.JobID, Attempt: in.Attempt, Fence: in.Fence, Info: in.Info})
}

func (p *plane) unlockState(w http.ResponseWriter, _ *http.Request) {
	p.change(func() { p.lock = nil })
	w.WriteHeader(http.StatusNoContent)
}

func (p *plane) chainHead(w http.ResponseWriter, _ *http.Request) {
	if p.overtook(w) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, headOf(p.chain))
}

// headOf is where the copy ends.
func headOf(records []runnerapi.ChainRecord) runnerapi.ChainHead {
	if len(records) == 0 {
		return runnerapi.ChainHead{}
	}
	last := records[len(records)-1]
	return runnerapi.ChainHead{Seq: last.Seq, Hash: capsule.DigestBytes(last.Body)}
}

func (p *plane) getChain(w http.ResponseWriter, r *http.Request) {
	var after int64
	_, _ = fmt.Sscan(r.URL.Query().Get("after"), &after)
	p.mu.Lock()
	defer p.mu.Unlock()
	records := []runnerapi.ChainRecord{}
	for _, record := range p.chain {
		if record.Seq > after && len(records) < 2 { // small pages, to have several
			records = append(records, record)
		}
	}
	answer(w, http.StatusOK, runnerapi.ChainRecords{Records: records})
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
		head = headOf(p.chain)
	})
	answer(w, http.StatusOK, head)
}

func (p *plane) appendLog(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	away := p.logsAway
	p.mu.Unlock()
	if away {
		refuse(w, http.StatusServiceUnavailable, "away", "log-ingest is away")
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad", err.Error())
		return
	}
	if r.Header.Get("Content-Encoding") == "zstd" {
		d, _ := zstd.NewReader(nil)
		defer d.Close()
		if raw, err = d.DecodeAll(raw, nil); err != nil {
			refuse(w, http.StatusBadRequest, "bad", err.Error())
			return
		}
	}
	batch := logship.Batch{Frames: raw}
	_, _ = fmt.Sscan(first(r.Header.Get("Berth-First-Seq"), r.URL.Query().Get("first_seq")), &batch.FirstSeq)
	if batch.PrevHash, err = logship.ParseHash(first(r.Header.Get("Berth-Prev-Hash"), r.URL.Query().Get("prev_hash"))); err != nil {
		refuse(w, http.StatusBadRequest, "bad", err.Error())
		return
	}
	var head logship.Head
	code := ""
	p.change(func() {
		s := p.streams[r.PathValue("stream")]
		if s == nil {
			s = &stream{head: logship.Start()}
			p.streams[r.PathValue("stream")] = s
		}
		head = s.head
		decision, _ := s.head.Decide(batch)
		switch decision.Verdict {
		case logship.Gap:
			code = logship.CodeGap
		case logship.Conflict:
			code = logship.CodeConflict
		case logship.Inside:
			if !slices.Contains(s.heads, decision.After) {
				code = logship.CodeConflict
			}
		case logship.Extends:
			for rest := decision.New; len(rest) > 0; {
				var frame []byte
				if frame, rest, err = logship.CutFrame(rest); err != nil {
					return
				}
				s.lines = append(s.lines, logship.DecodeFrame(frame).Text)
				s.head, _, _ = s.head.Advance(frame, 0)
				s.heads = append(s.heads, s.head)
			}
			head = s.head
		}
	})
	answerHead(w, code, head)
}

// answerHead says where a stream stands; a code makes it a refusal.
func answerHead(w http.ResponseWriter, code string, head logship.Head) {
	out := map[string]any{"next_seq": head.NextSeq, "hash": head.Hash.String()}
	if code == "" {
		answer(w, http.StatusOK, out)
		return
	}
	out["type"], out["title"], out["status"], out["code"] = "about:blank", "Conflict", http.StatusConflict, code
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(out)
}

func (p *plane) finishLog(w http.ResponseWriter, r *http.Request) {
	var end struct {
		Lines int64  `json:"total_lines"`
		Hash  string `json:"hash"`
	}
	end.Hash = logship.Hash{}.String()
	_ = json.NewDecoder(r.Body).Decode(&end)
	var head logship.Head
	code := ""
	p.change(func() {
		s := p.streams[r.PathValue("stream")]
		if s == nil {
			s = &stream{head: logship.Start()}
			p.streams[r.PathValue("stream")] = s
		}
		switch head = s.head; {
		case end.Lines >= head.NextSeq:
			code = logship.CodeGap
		case end.Hash != head.Hash.String():
			code = logship.CodeConflict
		default:
			s.finished = true
		}
	})
	if code != "" {
		answerHead(w, code, head)
		return
	}
	answer(w, http.StatusOK, map[string]any{"total_lines": end.Lines})
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func read[T any](r *http.Request) T {
	var v T
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": detail, "state_id": "x"})
}
