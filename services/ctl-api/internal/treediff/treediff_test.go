package treediff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	const one, two = `{"$sealed":"b25l"}`, `{"$sealed":"dHdv"}`
	for _, tc := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"equal trees", `{"a":{"b":1},"c":[1]}`, `{"c":[1],"a":{"b":1}}`, nil},
		{"a value", `{"a":{"b":1}}`, `{"a":{"b":2}}`, []string{"a.b changed 1 2"}},
		{"what was not there, leaf by leaf", `{}`, `{"a":{"b":1,"c":{}}}`, []string{"a.b added  1", "a.c added  {}"}},
		{"what is gone", `{"a":{"b":"x"}}`, `{"a":{}}`, []string{`a.b removed "x" `}},
		{"a list is one value", `{"a":[1,2]}`, `{"a":[2,1]}`, []string{"a changed [1,2] [2,1]"}},
		{"an object that becomes a text", `{"a":{"b":1}}`, `{"a":"x"}`, []string{`a changed {"b":1} "x"`}},
		{"names with dots", `{"a.b":{"c":1}}`, `{"a.b":{"c":2}}`, []string{"[a.b].c changed 1 2"}},
		{"a large number is not rounded", `{"a":9007199254740993}`, `{"a":9007199254740992}`, []string{"a changed 9007199254740993 9007199254740992"}},
		{"null is not absent", `{}`, `{"a":null}`, []string{"a added  null"}},
		{"no tree before", ``, `{"a":1}`, []string{"a added  1"}},
		{"a sealed value stays closed", `{"a":` + one + `}`, `{"a":` + two + `}`, []string{`a replaced "(sealed)" "(sealed)"`}},
		{"the same sealed value", `{"a":` + one + `}`, `{"a":` + one + `}`, nil},
		{"a value that becomes sealed", `{"a":"x"}`, `{"a":` + one + `}`, []string{`a changed "x" "(sealed)"`}},
		{"a sealed value in a list", `{"a":[` + one + `]}`, `{"a":[` + two + `]}`, []string{`a changed ["(sealed)"] ["(sealed)"]`}},
		{"a new sealed value", `{}`, `{"a":` + one + `}`, []string{`a added  "(sealed)"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			found, err := treediff.Compare([]byte(tc.old), []byte(tc.new))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range found {
				got = append(got, fmt.Sprintf("%s %s %s %s", c.Path, c.Op, c.Old, c.New))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, line := range got {
				if strings.Contains(line, "b25l") || strings.Contains(line, "dHdv") {
					t.Errorf("shows a sealed value: %s", line)
				}
			}
		})
	}
}

func TestCompareBroken(t *testing.T) {
	t.Parallel()
	if _, err := treediff.Compare([]byte(`{"a":`), []byte(`{}`)); err == nil {
		t.Error("a broken tree was compared")
	}
}
