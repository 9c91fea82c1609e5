package survey_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/survey"
)

// A Secret that somebody changed by hand is drift, with the key that has another value and a
// digest of each: no value leaves, and without the runner's key nobody can try values.
func TestValuesOfSecretsStayHere(t *testing.T) {
	t.Parallel()
	s, c := serve(t)
	wanted := s.deploy("Secret", 1)
	s.edit("secret", "a0000")
	s.objects["/api/v1/namespaces/shop/secrets/a0000"]["data"] = map[string]any{"key": "canary"}
	look := func(key string) jobspec.DriftDifference {
		t.Helper()
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		j := &job.Job{Stdout: log, Stderr: log}
		j.Spec.Drift, j.Spec.DigestKey = &jobspec.DriftLook{Change: "chg_1"}, []byte(key)
		result, err := survey.Operation(func(context.Context, *job.Job, *kube.Cluster) (survey.Objects, error) {
			return survey.Objects{Wanted: wanted}, nil
		})(kube.Share(t.Context(), c), j)
		if err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(result)
		raw = append(raw, said...)
		if err != nil || strings.Contains(string(raw), "canary") || strings.Contains(string(raw), `"one"`) || key != "" && strings.Contains(string(raw), key) {
			t.Errorf("values leave: %s, %v", raw, err)
		}
		if result.Drift.Class != "human_edit" || len(result.Drift.Objects) != 1 || len(result.Drift.Objects[0].Differences) != 1 {
			t.Fatalf("the look found %+v", result.Drift)
		}
		return result.Drift.Objects[0].Differences[0]
	}
	one, again, other, none := look("key of one"), look("key of one"), look("key of another"), look("")
	if one.Path != "data.key" || one.Manager != "kubectl-edit" || !strings.HasPrefix(one.Want, "(sensitive, digest ") || one.Want == one.Have {
		t.Errorf("the edit is %+v", one)
	}
	if one.Have != again.Have || one.Have == other.Have || one.Want == other.Want {
		t.Errorf("digests %s and %s of one install, %s of another", one.Have, again.Have, other.Have)
	}
	if none.Want != "(sensitive)" || none.Have != "(sensitive)" {
		t.Errorf("without a key: %+v", none)
	}
}
