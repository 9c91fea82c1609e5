package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// lines makes records of the agent's chain after head.
func (a *agent) lines(head chain.Head, what ...string) (records []runnerapi.ChainRecord, _ chain.Head) {
	a.w.t.Helper()
	for _, text := range what {
		line, err := chain.Next(head, chain.Record{Actor: "test", Kind: chain.Event, What: text}, chain.Signer{Chain: a.o.install, Key: a.key})
		if err != nil {
			a.w.t.Fatal(err)
		}
		head = line.Head
		records = append(records, runnerapi.ChainRecord{Seq: head.Seq, Body: line.Raw})
	}
	return records, head
}

func (a *agent) append(records []runnerapi.ChainRecord) *runnerapi.AppendChainResponse {
	a.w.t.Helper()
	resp, err := a.AppendChainWithResponse(a.w.t.Context(), runnerapi.ChainAppend{Records: records})
	if err != nil {
		a.w.t.Fatal(err)
	}
	return resp
}

func TestChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	head := func() runnerapi.ChainHead {
		t.Helper()
		resp, err := a.GetChainHeadWithResponse(t.Context())
		must(t, resp, err, http.StatusOK)
		return *resp.JSON200
	}
	if got := head(); got != (runnerapi.ChainHead{}) {
		t.Errorf("head of nothing is %+v", got)
	}
	three, at3 := a.lines(chain.Head{}, "one", "two", "three")
	must(t, a.append(three[:2]), nil, http.StatusOK)
	must(t, a.append(three[:2]), nil, http.StatusOK) // a lost reply
	must(t, a.append(three), nil, http.StatusOK)     // an overlap
	if diff := cmp.Diff(runnerapi.ChainHead{Seq: 3, Hash: at3.Hash}, head()); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	more, _ := a.lines(at3, "four", "five")
	gap := a.append(more[1:])
	refused(t, gap, nil, http.StatusConflict, "chain_gap")
	if gap.ApplicationProblemJSON409.Seq != 3 {
		t.Errorf("a gap is answered with head %d, want 3", gap.ApplicationProblemJSON409.Seq)
	}
	rewritten, _ := a.lines(chain.Head{}, "one", "TWO", "three", "four")
	refused(t, a.append(rewritten), nil, http.StatusConflict, "chain_fork")
	refused(t, a.append(rewritten[3:]), nil, http.StatusConflict, "chain_fork")

	stranger := w.machine(a.o, w.url)
	forged, _ := stranger.lines(at3, "four")
	refused(t, a.append(forged), nil, http.StatusUnprocessableEntity, "chain_record_bad")
	swapped := []runnerapi.ChainRecord{{Seq: 4, Body: more[1].Body}}
	refused(t, a.append(swapped), nil, http.StatusConflict, "chain_fork")
	line, err := chain.Next(at3, chain.Record{Actor: "test", Kind: chain.Event, What: "four", Time: time.Now().Add(time.Hour)}, chain.Signer{Chain: a.o.install, Key: a.key})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, a.append([]runnerapi.ChainRecord{{Seq: 4, Body: line.Raw}}), nil, http.StatusUnprocessableEntity, "dated_in_future")
	refused(t, a.append([]runnerapi.ChainRecord{more[1], more[0]}), nil, http.StatusUnprocessableEntity, "invalid")
	must(t, a.append(more), nil, http.StatusOK)

	// The machine is replaced: its chain goes on under the next key.
	fresh := w.machine(a.o, w.url)
	fresh.enrol(w.enrolment(a.o, a.id, true))
	fresh.start()
	last := one[int64](w, `select seq from chain_heads where chain = $1`, a.o.install)
	resp, err := fresh.GetChainHeadWithResponse(t.Context())
	must(t, resp, err, http.StatusOK)
	onward, _ := fresh.lines(chain.Head{Seq: resp.JSON200.Seq, Hash: resp.JSON200.Hash}, "six")
	must(t, fresh.append(onward), nil, http.StatusOK)
	if last != 5 || onward[0].Seq != 6 {
		t.Errorf("chain went on from %d with %d, want 5 and 6", last, onward[0].Seq)
	}
}

// A runner that comes with less of its chain than the copy has, or with another
// one, raises an alarm; so does nobody else.
func TestChainOfASessionIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	records, at3 := a.lines(chain.Head{}, "one", "two", "three")
	must(t, a.append(records), nil, http.StatusOK)
	_, other := a.lines(chain.Head{}, "one", "two", "THREE")
	_, ahead := a.lines(at3, "four")
	with := func(head *chain.Head) (alarms string) {
		t.Helper()
		request := a.sessionRequest()
		if head != nil {
			request.ChainHead = &runnerapi.ChainHead{Seq: head.Seq, Hash: head.Hash}
		}
		resp, err := a.OpenSessionWithResponse(t.Context(), request)
		must(t, resp, err, http.StatusOK)
		a.transport.SetSession(resp.JSON200.Token)
		return one[string](w, `select coalesce(string_agg(kind, ' ' order by created_at, id), '') from alarms where runner_id = $1`, a.id)
	}
	for _, tc := range []struct {
		name string
		head *chain.Head
		want string
	}{
		{"of a version that names none", nil, ""},
		{"the same", &at3, ""},
		{"longer: not copied yet", &ahead, ""},
		{"another record", &other, "chain_fork"},
		{"removed", &chain.Head{}, "chain_fork chain_behind"},
		{"the same problem once more", &chain.Head{}, "chain_fork chain_behind"},
	} {
		if got := with(tc.head); got != tc.want {
			t.Errorf("%s: alarms %q, want %q", tc.name, got, tc.want)
		}
	}
	resp, err := a.GetChainWithResponse(t.Context(), &runnerapi.GetChainParams{After: 1})
	must(t, resp, err, http.StatusOK)
	if diff := cmp.Diff(records[1:], resp.JSON200.Records); diff != "" {
		t.Errorf("records after the first (-want +got):\n%s", diff)
	}
}
