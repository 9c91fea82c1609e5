package alarms_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/alarms"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
)

var constant = regexp.MustCompile(`alarm[A-Z]\w*\s*=\s*"([a-z_]+)"`)

// Every kind that is raised has its cause and its remedy, here and on the page.
func TestEveryKindIsExplained(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../runner-api/internal/api/alarms.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/reference/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{recipient.AlarmRefused}
	for _, m := range constant.FindAllSubmatch(source, -1) {
		kinds = append(kinds, string(m[1]))
	}
	if len(kinds) < 7 {
		t.Fatalf("found only %v", kinds)
	}
	for _, kind := range kinds {
		if text := alarms.Of(kind); strings.HasPrefix(text.Cause, "an alarm of the kind ") {
			t.Errorf("%s has no text of its own", kind)
		}
		if !strings.Contains(string(page), "| `"+kind+"` |") {
			t.Errorf("%s is not on the page", kind)
		}
	}
	if got := alarms.Of("of no kind"); !strings.Contains(got.Cause, "of no kind") || got.Remedy == "" {
		t.Errorf("an unknown kind: %+v", got)
	}
}
