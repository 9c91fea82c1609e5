package session_test

import (
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	asks := func(id, before string) session.Opening { return session.Opening{ID: id, Before: before} }
	used := func(id string) session.Last { return session.Last{Opening: id, Used: true} }
	unused := func(id string) session.Last { return session.Last{Opening: id} }
	tests := []struct {
		name  string
		last  session.Last
		asked session.Opening
		want  session.Verdict
	}{
		{"first session of a machine", session.Last{}, asks("a", ""), session.Continues},
		{"an agent that was updated", session.Last{}, asks("a", ""), session.Continues},
		{"an older agent that names none", session.Last{}, asks("", ""), session.Continues},
		{"a restored control plane that was told to forget", session.Last{}, asks("k", "j"), session.Continues},
		{"a machine that comes back after another one", session.Last{Known: true}, asks("b", "a"), session.Over},
		{"killed before it stored the id", used("a"), asks("b", "a"), session.Continues},
		{"killed after it stored the id, before it asked", used("a"), asks("b", "a"), session.Continues},
		{"killed before the answer", unused("b"), asks("b", "a"), session.Same},
		{"the answer was lost on the first session", unused("a"), asks("a", ""), session.Same},
		{"killed after it stored the answer, before the first use", unused("b"), asks("c", "b"), session.Continues},
		{"killed later", used("b"), asks("c", "b"), session.Continues},
		{"a request that was late on its way, the session is in use", used("b"), asks("b", "a"), session.Over},
		{"a request that was late on its way, the next session is open", session.Last{Opening: "c", Used: true, Known: true}, asks("b", "a"), session.Over},
		{"a thief first, with the latest copy", used("b"), asks("t", "b"), session.Continues},
		{"the true agent after the thief", used("t"), asks("c", "b"), session.Disputed},
		{"the true agent after a thief who has not used the session", unused("t"), asks("c", "b"), session.Disputed},
		{"the true agent whose answer was lost, after a thief went on from it", session.Last{Opening: "t", Used: true, Known: true}, asks("b", "a"), session.Over},
		{"the true agent, told that the session it asked for is over", used("b"), asks("c", "a"), session.Disputed},
		{"a thief with an older copy", used("c"), asks("t", "a"), session.Disputed},
		{"a thief who asks for the session that is in use", used("b"), asks("b", ""), session.Over},
		{"a snapshot of a machine that was restored", used("d"), asks("e", "b"), session.Disputed},
		{"a snapshot that was taken between question and answer", session.Last{Opening: "d", Used: true, Known: true}, asks("c", "b"), session.Over},
		{"a clone that starts while the other runs", used("c"), asks("k", "b"), session.Disputed},
		{"the session's file was lost", used("b"), asks("c", ""), session.Disputed},
		{"an older agent on a machine whose agent named one", used("b"), asks("", ""), session.Disputed},
		{"a restored control plane that is behind", used("b"), asks("k", "j"), session.Disputed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := session.Judge(tt.last, tt.asked); got != tt.want {
				t.Errorf("Judge(%+v, %+v) = %s, want %s", tt.last, tt.asked, got, tt.want)
			}
		})
	}
}

// TestJudgeWithoutFalseAlarm kills one honest agent at every point of opening a
// session, several times in a row, and lets requests arrive late: nothing of that
// is disputed, and every session can be opened in the end.
func TestJudgeWithoutFalseAlarm(t *testing.T) {
	t.Parallel()
	const deaths = 5 // 6 points each: 7776 stories
	points := []string{"before it stores", "before it asks", "before the answer", "before it stores the answer", "before the first use", "later"}
	stories := 1
	for range deaths {
		stories *= len(points)
	}
	for story := range stories {
		a, plane := agentFile{}, planeRows{}
		for rest := story; rest > 0; rest /= len(points) {
			a.open(t, &plane, rest%len(points))
		}
		a.open(t, &plane, len(points)) // nobody kills it
		if plane.last.Opening != a.opened || !plane.last.Used {
			t.Fatalf("story %d: the agent has %s, the rows say %+v", story, a.opened, plane.last)
		}
		// All requests of before arrive once more, late.
		for _, late := range plane.requests {
			if got := plane.judge(late); got != session.Over {
				t.Fatalf("story %d: a late %+v is %s", story, late, got)
			}
		}
	}
}

// agentFile is what an agent has on its disk.
type agentFile struct {
	opened, asking string
	made           int
}

// planeRows is what runner-api keeps.
type planeRows struct {
	last     session.Last
	known    map[string]bool
	requests []session.Opening
}

func (p *planeRows) judge(asked session.Opening) session.Verdict {
	last := p.last
	last.Known = p.known[asked.ID] && asked.ID != last.Opening
	return session.Judge(last, asked)
}

// open is one life that ends at a point.
func (a *agentFile) open(t *testing.T, plane *planeRows, killedAt int) {
	t.Helper()
	if killedAt == 0 {
		return
	}
	if a.asking == "" {
		a.made++
		a.asking = string(rune('a'+a.made/26)) + string(rune('a'+a.made%26))
	}
	if killedAt == 1 {
		return
	}
	asked := session.Opening{ID: a.asking, Before: a.opened}
	got := plane.judge(asked)
	if got != session.Continues && got != session.Same {
		t.Fatalf("an honest %+v is %s; the rows say %+v", asked, got, plane.last)
	}
	if plane.known == nil {
		plane.known = map[string]bool{}
	}
	plane.known[asked.ID] = true
	plane.requests = append(plane.requests, asked)
	plane.last = session.Last{Opening: asked.ID}
	if killedAt <= 3 {
		return
	}
	a.opened, a.asking = a.asking, ""
	if killedAt == 4 {
		return
	}
	plane.last.Used = true
}
