package samples_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/samples"
)

func at(minute int) jobspec.Sample {
	return jobspec.Sample{At: time.Date(2026, 11, 28, 0, minute, 0, 0, time.UTC), Metrics: []jobspec.Metric{{Name: "runner_cpu_used", Kind: jobspec.MetricGauge, Value: float64(minute)}}}
}

func TestSpool(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "samples.json")
	s := samples.Open(path)
	save := func() {
		t.Helper()
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
	}
	s.Add(at(0))
	s.Done(1)
	save()
	if _, err := os.Stat(path); err == nil {
		t.Error("a sample that was sent at once was written")
	}
	for i := range samples.Most + 5 {
		s.Add(at(i))
	}
	save()
	s = samples.Open(path) // an agent that was killed
	if next := s.Next(); len(next) != jobspec.MaxSamples || !next[0].At.Equal(at(5).At) || next[0].Metrics[0].Value != 5 {
		t.Errorf("the next are %d from %+v", len(next), next[0])
	}
	for rounds := 0; len(s.Next()) > 0; rounds++ {
		if rounds > samples.Most/jobspec.MaxSamples {
			t.Fatalf("after %d rounds some are left", rounds)
		}
		s.Done(len(s.Next()))
	}
	save()
	if _, err := os.Stat(path); err == nil {
		t.Error("nothing waits, and there is a file")
	}
	if err := os.WriteFile(path, []byte(`[{"at":`), 0o600); err != nil {
		t.Fatal(err)
	}
	s = samples.Open(path)
	if len(s.Next()) != 0 {
		t.Errorf("of a damaged file there are %+v", s.Next())
	}
	s.Drop()
	save()
	if _, err := os.Stat(path); err == nil {
		t.Error("a damaged file stays")
	}
}
