package main

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       processStat
		ok         bool
	}{
		{
			name: "own time and that of children that have ended",
			text: "42 (postgres) S 7 42 42 0 -1 4194304 1 2 3 4 100 20 3000 400 20 0 1 0 55",
			want: processStat{parent: 7, took: 35200 * time.Millisecond}, ok: true,
		},
		{
			name: "a name with spaces and parentheses",
			text: "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 1 0 0 0 20 0 1 0 55",
			want: processStat{parent: 7, took: 10 * time.Millisecond}, ok: true,
		},
		{name: "cut off", text: "42 (postgres) S 7 42"},
		{name: "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := parseStat(tt.text); got != tt.want || ok != tt.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestProcessesUnderOurs(t *testing.T) {
	t.Parallel()
	all := map[int]processStat{
		1:  {},
		10: {parent: 1, ours: true},
		11: {parent: 10},
		12: {parent: 11},
		20: {parent: 1},
		30: {parent: 31},
		31: {parent: 30},
	}
	for pid, want := range map[int]bool{1: false, 10: true, 11: true, 12: true, 20: false, 30: false, 99: false} {
		if got := underOurs(all, pid); got != want {
			t.Errorf("process %d: %v, want %v", pid, got, want)
		}
	}
}
