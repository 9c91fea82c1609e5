package enginepod

import (
	"encoding/json"
	"testing"
)

// What is made of what the API server has of an attempt.
func TestSight(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, job, pods string // a job of "" is gone
		over            bool
		waits           string
		code            int // -1: not known
	}{
		{name: "nothing is left", over: true, code: -1},
		{name: "no pod yet", job: `{}`, code: -1},
		{name: "deleted before it had a pod", job: `{"metadata":{"deletionTimestamp":"x"}}`, over: true, code: -1},
		{
			name: "failed without a pod", job: `{"status":{"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}}`,
			over: true, waits: "BackoffLimitExceeded", code: -1,
		},
		{name: "runs", job: `{}`, pods: `{"status":{"phase":"Running","containerStatuses":[{"state":{"running":{}}}]}}`, code: -1},
		{
			name: "is deleted and still runs, the Job is gone",
			pods: `{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Running","containerStatuses":[{"state":{"running":{}}}]}}`, code: -1,
		},
		{
			name: "waits for its image", job: `{}`,
			pods:  `{"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull","message":"not\nfound"}}}]}}`,
			waits: "ErrImagePull: not found", code: -1,
		},
		{
			name: "has no room", job: `{}`,
			pods:  `{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes"}]}}`,
			waits: "Unschedulable: 0/1 nodes", code: -1,
		},
		{
			name: "ended with a code", job: `{}`, over: true, code: 3, waits: "Error",
			pods: `{"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":3,"reason":"Error"}}}]}}`,
		},
		{
			name: "ended, and its node has not tidied up", job: `{}`, over: true, code: 0,
			pods: `{"status":{"phase":"Running","containerStatuses":[{"state":{"terminated":{"exitCode":0}}}]}}`,
		},
		{
			name: "did not begin", job: `{}`, over: true, code: -1, waits: "Error: used before",
			pods: `{"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":125,"reason":"Error","message":"used before"}}}]}}`,
		},
		{
			name: "one of two still runs", job: `{}`, code: 0,
			pods: `{"status":{"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"exitCode":0}}}]}},{"status":{"phase":"Running"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := sight{noJob: tc.job == ""}
			if !s.noJob {
				decode(t, tc.job, &s.job)
			}
			decode(t, `{"items":[`+tc.pods+`]}`, &s.pods)
			code, known := s.exitCode()
			if !known {
				code = -1
			}
			if s.over() != tc.over || s.waits() != tc.waits || code != tc.code {
				t.Errorf("over %v, waits %q, code %d; want %v, %q, %d", s.over(), s.waits(), code, tc.over, tc.waits, tc.code)
			}
		})
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
