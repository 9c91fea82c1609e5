package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/disclosure"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// What the customer releases becomes a record, for exactly the bytes on disk.
func TestDisclosureIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.sessions) == 1 })
	keys, err := r.dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	runner, _, err := r.dir.LoadRunner()
	if err != nil {
		t.Fatal(err)
	}
	release := func(name, text, signed string) {
		t.Helper()
		path, now := filepath.Join(r.dir.Support(), name), time.Now().UTC()
		if err := datadir.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		payload, err := json.Marshal(disclosure.Statement{
			Type: disclosure.Type, InstallID: runner.InstallID, Bundle: name, Digest: capsule.DigestBytes([]byte(signed)), Size: int64(len(signed)),
			Recipient: "vendor support", At: now, Until: now.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		env, err := consent.Ed25519Signer(keys.Sign).Sign(disclosure.Purpose, consent.NewEnvelope(disclosure.Purpose, payload))
		if err != nil {
			t.Fatal(err)
		}
		if err := datadir.WriteJSON(path+agent.ReleasedSuffix, env); err != nil {
			t.Fatal(err)
		}
	}
	release("other.txt", "more than was shown", "what was shown")
	r.appears(filepath.Join(r.dir.Support(), "other.txt"+agent.RefusedSuffix))
	release("good.txt", "what was shown", "what was shown")
	r.appears(filepath.Join(r.dir.Support(), "good.txt"+agent.RecordedSuffix))
	text, err := os.ReadFile(r.dir.Chain())
	if err != nil {
		t.Fatal(err)
	}
	released := 0
	for raw := range strings.Lines(string(text)) {
		record, err := chain.ParseRecord([]byte(strings.TrimSpace(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(record.What, "output was released to vendor support") {
			released++
			if !strings.Contains(record.Detail, capsule.DigestBytes([]byte("what was shown"))) {
				t.Errorf("record = %+v", record)
			}
		}
	}
	if released != 1 {
		t.Errorf("%d releases are recorded, want the one of the bytes that are there", released)
	}
}
