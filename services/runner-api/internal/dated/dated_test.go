package dated_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		times []dated.Time
		want  []string // pointers of the refusal
	}{
		{name: "nothing is dated"},
		{name: "a time that is not known", times: []dated.Time{{Pointer: "/a"}}},
		{name: "past, present, and as far ahead as clocks are", times: []dated.Time{{"/a", now.AddDate(-9, 0, 0)}, {"/b", now}, {"/c", now.Add(5 * time.Minute)}}},
		{name: "a moment further", times: []dated.Time{{"/a", now.Add(5*time.Minute + 1)}}, want: []string{"/a"}},
		{name: "all are named", times: []dated.Time{{"/a", now.AddDate(73, 0, 0)}, {"/b", now}, {"/c", now.Add(time.Hour)}}, want: []string{"/a", "/c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if err := dated.Check(now, tc.times...); err != nil {
				problem := fault.From(err)
				if problem.Status != 422 || problem.Code != "dated_in_future" {
					t.Errorf("refused with %+v", problem)
				}
				for _, field := range problem.Errors {
					got = append(got, field.Pointer)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}
