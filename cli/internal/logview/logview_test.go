package logview_test

import (
	"testing"

	"github.com/berth-dev/berth/cli/internal/logview"
	"github.com/berth-dev/berth/pkg/logapi"
)

func TestCompletenessOfALog(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		s    logapi.Stream
		want string
	}{
		{"complete", logapi.Stream{State: logapi.StreamStateFinished, Lines: 12431, Sha256: "ab", Complete: true}, "12,431 of 12,431 lines, sha256 ab"},
		{"lines were dropped", logapi.Stream{State: logapi.StreamStateFinished, Lines: 101, Sha256: "ab", Gaps: []logapi.Gap{{Lines: 1284, Reason: logapi.GapReasonDropped, Seq: 51}}},
			"100 of 1,384 lines, sha256 ab; missing: 1,284 lines dropped at line 51"},
		{"lines expired", logapi.Stream{State: logapi.StreamStateFinished, Lines: 100, Sha256: "ab", Gaps: []logapi.Gap{{Lines: 60, Reason: logapi.GapReasonExpired, Seq: 1}}},
			"40 of 100 lines, sha256 ab; missing: 60 lines expired at line 1"},
		{"open", logapi.Stream{State: logapi.StreamStateOpen, Lines: 7}, "7 lines so far, more may come"},
		{"cut off", logapi.Stream{State: logapi.StreamStateClosed, Lines: 7}, "7 lines, then the attempt was cut off; its end is unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := logview.Completeness(&tc.s); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
