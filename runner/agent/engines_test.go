package agent_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/cluster"
)

func TestWhereEnginesRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		engines string
		pod     bool
		uid     int
		wrong   string // "" is right
	}{
		{name: "as ever"},
		{name: "processes in a pod", engines: agent.EnginesProcess, pod: true},
		{name: "Jobs in a pod", engines: agent.EnginesJobs, pod: true, uid: 61000},
		{name: "Jobs elsewhere", engines: agent.EnginesJobs, uid: 61000, wrong: "berth-runner manifest"},
		{name: "Jobs as root", engines: agent.EnginesJobs, pod: true, wrong: "--engine-uid"},
		{name: "anything", engines: "threads", wrong: "not process or jobs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := agent.Config{Data: t.TempDir(), Engine: "/bin/true", Engines: tc.engines, EngineUID: tc.uid}
			if tc.pod {
				c.Pod = &cluster.Pod{}
			}
			got, err := c.Complete()
			switch {
			case tc.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.wrong == "" && tc.engines == "" && got.Engines != agent.EnginesProcess:
				t.Errorf("default %q", got.Engines)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("error %v, want one with %q", err, tc.wrong)
			}
		})
	}
}
