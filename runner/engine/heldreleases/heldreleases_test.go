package heldreleases_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/heldreleases"
	"github.com/berth-dev/berth/runner/engine/job"
)

// keeper answers as the agent's proxy does. Requests of a test come one by one.
type keeper struct{ state []byte }

func newKeeper(t *testing.T) (*keeper, map[string]string) {
	t.Helper()
	k := &keeper{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/lock":
		case r.Method == http.MethodPost:
			k.state, _ = io.ReadAll(r.Body)
		case k.state == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write(k.state)
		}
	}))
	t.Cleanup(server.Close)
	return k, map[string]string{"TF_HTTP_ADDRESS": server.URL + "/", "TF_HTTP_LOCK_ADDRESS": server.URL + "/lock",
		"TF_HTTP_UNLOCK_ADDRESS": server.URL + "/lock", "TF_HTTP_LOCK_METHOD": "POST", "TF_HTTP_UNLOCK_METHOD": "DELETE"}
}

func revision(version int, status release.Status) *release.Release {
	return &release.Release{
		Name: "web", Namespace: "shop", Version: version, Manifest: "kind: Secret", Info: &release.Info{Status: status},
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.2.3"}}, Config: map[string]any{"password": "canary-value"},
		Labels: map[string]string{"berth.dev/change": "chg1", "owner": "somebody"},
	}
}

// The driver keeps to what Helm's storage expects of one.
func TestDriver(t *testing.T) {
	t.Parallel()
	k, env := newKeeper(t)
	held, err := heldreleases.Open(t.Context(), env, "job1")
	if err != nil {
		t.Fatal(err)
	}
	s := storage.Init(held.Driver("shop"))
	if _, err := s.History("web"); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("history of nothing: %v", err)
	}
	if _, err := s.Deployed("web"); !errors.Is(err, driver.ErrNoDeployedReleases) {
		t.Errorf("deployed of nothing: %v", err)
	}
	for v := 1; v <= 12; v++ { // as many that the order of texts is another
		status := release.StatusSuperseded
		if v == 12 {
			status = release.StatusDeployed
		}
		if err := s.Create(revision(v, status)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Create(revision(12, release.StatusDeployed)); !errors.Is(err, driver.ErrReleaseExists) {
		t.Errorf("created twice: %v", err)
	}
	if err := s.Update(revision(13, release.StatusDeployed)); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("updated what is not there: %v", err)
	}
	if r, err := s.Deployed("web"); err != nil || r.Version != 12 || r.Labels["berth.dev/change"] != "chg1" || r.Labels["owner"] != "" || r.Chart.Metadata.Version != "1.2.3" {
		t.Errorf("deployed is %+v, %v", r, err)
	}
	r, err := s.Get("web", 3)
	if err != nil {
		t.Fatal(err)
	}
	r.Info.Status = release.StatusFailed // a copy
	if r, _ := s.Get("web", 3); r.Info.Status != release.StatusSuperseded {
		t.Error("what was read is what is kept")
	}
	if _, err := storage.Init(held.Driver("other")).History("web"); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("another namespace sees it: %v", err)
	}
	if _, err := s.Delete("web", 3); err != nil {
		t.Fatal(err)
	}
	if _, serial := held.Position(); serial != 13 {
		t.Errorf("serial %d after 13 writes", serial)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := heldreleases.Read(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := storage.Init(read.Driver("shop")).History("web"); err != nil || len(list) != 11 || list[10].Version != 12 {
		t.Errorf("the next job sees %d revisions, %v", len(list), err)
	}
	if err := read.Driver("shop").Create("x", revision(14, release.StatusDeployed)); err == nil {
		t.Error("a job without the lock writes")
	}
	if strings.Contains(string(k.state), "canary-value") {
		t.Error("values stand outside of the records")
	}
}

// A document that would be too large for the control plane is not handed in, and what
// was there stays.
func TestDocumentHasALimit(t *testing.T) {
	t.Parallel()
	k, env := newKeeper(t)
	held, err := heldreleases.Open(t.Context(), env, "job1")
	if err != nil {
		t.Fatal(err)
	}
	s := storage.Init(held.Driver("shop"))
	if err := s.Create(revision(1, release.StatusDeployed)); err != nil {
		t.Fatal(err)
	}
	before := string(k.state)
	large := revision(2, release.StatusPendingUpgrade)
	random := make([]byte, helmstate.MaxBytes) // it does not pack: a fixed sequence without repetition
	x := uint64(88172645463325252)
	for i := range random {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		random[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[x>>58]
	}
	large.Manifest = string(random)
	if err := s.Create(large); err == nil || !strings.Contains(err.Error(), "lower history_limit") {
		t.Errorf("error %v", err)
	}
	if string(k.state) != before || held.Unsaved() == nil {
		t.Error("the state moved, or the job does not know that a record is missing")
	}
}

// Records that are damaged, or hold another release than they say, are refused without
// quoting them.
func TestRecordsThatLie(t *testing.T) {
	t.Parallel()
	pack := func(text string) []byte {
		packed, err := helmstate.Pack([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	for name, packed := range map[string][]byte{
		"not packed": []byte("canary"), "not JSON": pack("canary"), "another release": pack(`{"name":"canary","version":1,"info":{}}`),
		"another revision": pack(`{"name":"web","version":2,"info":{}}`), "no status": pack(`{"name":"web","version":1}`), "cut short": pack(`{"name":"web","version":1,"info":{}}`)[:20],
	} {
		k, env := newKeeper(t)
		d := helmstate.Document{}.Next("lineage", []helmstate.Record{{Key: "sh.helm.release.v1.web.v1", Namespace: "shop", Release: "web", Revision: 1, Packed: packed}})
		k.state = marshal(t, d)
		held, err := heldreleases.Read(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := held.Driver("shop").Query(map[string]string{"name": "web"}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	k, env := newKeeper(t)
	for _, state := range []string{`canary`, `{"version":4,"helm":{"format":2}}`} {
		k.state = []byte(state)
		if _, err := heldreleases.Read(t.Context(), env); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// A component that was one of another tool before: a state with something in it stays,
// one that was emptied goes on with its lineage and serial.
func TestStateOfAnotherTool(t *testing.T) {
	t.Parallel()
	k, env := newKeeper(t)
	k.state = []byte(`{"version":4,"serial":7,"lineage":"lin","terraform_version":"1.11.4","outputs":{"a":{"value":"b"}},"resources":[{"mode":"managed","type":"t","name":"n","instances":[{"index_key":0,"attributes":{}}]}]}`)
	_, err := heldreleases.Read(t.Context(), env)
	if !errors.Is(err, helmstate.ErrOther) {
		t.Errorf("error %v", err)
	}
	if f, ok := errors.AsType[*job.Failure](err); !ok || f.Outcome != jobspec.OutcomeRefused || f.Remedy == "" {
		t.Errorf("it is no refusal with a remedy: %v", err)
	}
	k.state = []byte(`{"version":4,"serial":8,"lineage":"lin","terraform_version":"1.11.4","outputs":{},"resources":[]}`)
	held, err := heldreleases.Open(t.Context(), env, "job1")
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Drop("shop", "web"); err != nil {
		t.Fatal(err)
	}
	if _, serial := held.Position(); serial != 8 {
		t.Errorf("nothing to drop made serial %d", serial)
	}
	if err := held.Driver("shop").Create("sh.helm.release.v1.web.v1", revision(1, release.StatusDeployed)); err != nil {
		t.Fatal(err)
	}
	if lineage, serial := held.Position(); lineage != "lin" || serial != 9 {
		t.Errorf("lineage %q serial %d", lineage, serial)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
