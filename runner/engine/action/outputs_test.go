package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseOutputs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       map[string]any
		err        string
	}{
		{name: "nothing", text: "", want: map[string]any{}},
		{name: "lines", text: "a=1\r\n\n b =x=y\nempty=\n", want: map[string]any{"a": "1", "b": "x=y", "empty": ""}},
		{name: "later wins", text: "a=1\na=2", want: map[string]any{"a": "2"}},
		{name: "an object over lines", text: "{\n \"a\": {\"b\": [1]}\n}\n", want: map[string]any{"a": map[string]any{"b": []any{json.Number("1")}}}},
		{name: "objects and lines", text: "{\"a\":1}\nb=2\n{\"c\":null}", want: map[string]any{"a": json.Number("1"), "b": "2", "c": nil}},
		{name: "a line that is neither", text: "a=1\nhunter2\n", err: "line 2 is neither name=value nor a JSON object"},
		{name: "a name with spaces", text: "a b=1", err: "line 1 is neither name=value nor a JSON object"},
		{name: "a name in an object that is none", text: `{"a b": 1}`, err: "a name of 3 characters is not accepted"},
		{name: "bytes that are no text", text: "a=\xff", want: map[string]any{"a": "\uFFFD"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseOutputs([]byte(tc.text))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTooManyOutputs(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range maxOutputs + 1 {
		fmt.Fprintf(&text, "name_%d=x\n", i)
	}
	if _, err := parseOutputs([]byte(text.String())); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("error %v", err)
	}
}
