package logship

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	t.Parallel()
	// hold is that of one secret, "KEY\nEND".
	hold := func(raw []byte) int {
		for n := min(len("KEY\nEND")-1, len(raw)); n > 0; n-- {
			if strings.HasSuffix(string(raw), "KEY\nEND"[:n]) {
				return n
			}
		}
		return 0
	}
	tests := []struct {
		name        string
		raw         string
		full, ended bool
		want        string
	}{
		{name: "whole lines only", raw: "one\ntwo\nthr", want: "one\ntwo\n"},
		{name: "no line yet", raw: "thr", want: ""},
		{name: "rest at the end", raw: "one\nthr", ended: true, want: "one\nthr"},
		{name: "the end holds nothing", raw: "one\nKEY", ended: true, want: "one\nKEY"},
		{name: "a secret may begin in the last line", raw: "one\nKEY\n", want: "one\n"},
		{name: "a whole secret is not split at its line end", raw: "one\nKEY\nEND", want: "one\n"},
		{name: "a whole secret in whole lines", raw: "one\nKEY\nEND\nthr", want: "one\nKEY\nEND\n"},
		{name: "it was no secret", raw: "KEY\nother\n", want: "KEY\nother\n"},
		{name: "everything held", raw: "KEY\n", want: ""},
		{name: "long line", raw: "aaaaaaaa", full: true, want: "aaaaaaaa"},
		{name: "long line without the held bytes", raw: "aaaaaKEY", full: true, want: "aaaaa"},
		{name: "long line between characters", raw: "aaa\xc3", full: true, want: "aaa"},
		{name: "a secret larger than the window", raw: "KEY\n", full: true, want: "KEY\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.raw[:cut([]byte(tt.raw), hold, tt.full, tt.ended)]; got != tt.want {
				t.Errorf("cut(%q): got %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0).UTC()
	long := strings.Repeat("x", MaxText-1) + "é" + "tail"
	rec := func(text string, continues bool) Record {
		return Record{Time: at, Source: Stdout, Text: text, Continues: continues}
	}
	tests := []struct {
		name  string
		in    string
		ended bool
		want  []Record
	}{
		{"lines", "one\n\ntwo\r\n", false, []Record{rec("one", false), rec("", false), rec("two", false)}},
		{"part of a line", "one\ntw", false, []Record{rec("one", false), rec("tw", true)}},
		{"last line without end", "one\ntw", true, []Record{rec("one", false), rec("tw", false)}},
		{"longer than a record, split before the character", long + "\n", false, []Record{rec(long[:MaxText-1], true), rec("étail", false)}},
		{"not UTF-8", "a\xffb\n", false, []Record{rec("a\ufffdb", false)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, split([]byte(tt.in), Stdout, at, tt.ended)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}
