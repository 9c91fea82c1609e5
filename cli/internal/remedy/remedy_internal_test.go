package remedy

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestWhereItIs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"unknown name", `there is no install "acne"`, "berth installs list (shows what there is)"},
		{"id of another kind", `there is no install "wfl_1"`, "berth workflows show wfl_1 (it is the id of a workflow)"},
		{"unknown id of this kind", `there is no workflow "wfl_1"`, "berth workflows list (shows what there is)"},
		{"a step has a log only", `there is no change "stp_1"`, "berth logs stp_1 (it is the id of a step)"},
		{"a token is shown nowhere", `there is no install "tok_1"`, "berth installs list (shows what there is)"},
		{"name with quotes", `there is no app "a\"b"`, "berth apps list (shows what there is)"},
		{"noun without a list", `there is no member "bob"`, ""},
		{"another sentence", "the release has no component x", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := whereItIs(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFollowingAgain(t *testing.T) {
	t.Parallel()
	problem := func(status int) error { return &api.Problem{Problem: ctlapi.Problem{Status: status, Title: "x"}} }
	const again = "berth workflows watch wfl_1"
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"interrupted", errors.New("interrupted"), true},
		{"control plane away", &api.Unreachable{Unreachable: &berth.Unreachable{URL: "http://x", Err: errors.New("refused")}}, true},
		{"database away", fmt.Errorf("look: %w", problem(http.StatusServiceUnavailable)), true},
		{"no such workflow", problem(http.StatusNotFound), false},
		{"not allowed", problem(http.StatusForbidden), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.HasPrefix(For(WhileFollowing(tc.err, again)), again); got != tc.want {
				t.Errorf("told how to follow it again: %t, want %t", got, tc.want)
			}
		})
	}
	if WhileFollowing(nil, again) != nil {
		t.Error("an error where there was none")
	}
}
