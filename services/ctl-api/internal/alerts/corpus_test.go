package alerts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/verdict"
)

// Of what was recorded of the fault corpus on a real cluster, each fault opens exactly one
// alert, and what is quiet or cannot be told opens none.
func TestAlertsOfTheFaultCorpus(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "runner", "engine", "testdata", "health-faults.json"))
	if err != nil {
		t.Fatal(err)
	}
	var scenes []struct {
		Name  string `json:"name"`
		Want  string `json:"want"`
		Looks []struct {
			Outcome string `json:"outcome"`
		} `json:"looks"`
	}
	if err := json.Unmarshal(raw, &scenes); err != nil {
		t.Fatal(err)
	}
	if len(scenes) < 50 {
		t.Fatalf("only %d scenes are recorded", len(scenes))
	}
	// As probes are judged.
	rules := verdict.Rules{UnhealthyAfter: 2, HealthyAfter: 1, SilentAfter: 4 * time.Minute}
	opened := map[string]int{} // by what was wanted
	for _, sc := range scenes {
		h := history("+") // before anything happened
		for _, look := range sc.Looks {
			h = append(h, map[string]byte{"good": '+', "bad": '-', "unknown": '?'}[look.Outcome])
		}
		_, alerted := replay(h, rules)
		opened[sc.Want] += len(alerted)
		if want := map[string]int{"unhealthy": 1}[sc.Want]; len(alerted) != want {
			t.Errorf("%s: %d alerts, want %d", sc.Name, len(alerted), want)
		}
	}
	t.Logf("alerts by what was wanted: %v of %d scenes", opened, len(scenes))
}
