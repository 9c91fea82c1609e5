package local_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/local"
	"github.com/berth-dev/berth/cli/internal/up"
)

func TestStatusLines(t *testing.T) {
	t.Parallel()
	part := func(name string, pid int, change func(*up.PartHealth)) up.PartHealth {
		p := up.PartHealth{PartStatus: up.PartStatus{Name: name, PID: pid, Log: "/data/log/" + name}, Ready: true}
		change(&p)
		return p
	}
	running := up.Status{Running: true, URL: "http://127.0.0.1:8700", Dir: "/data", PID: 7, Parts: []up.PartHealth{
		part("postgres", 8, func(*up.PartHealth) {}),
		part("ctl-api", 9, func(p *up.PartHealth) { p.Restarts, p.Last = 2, "exit status 1" }),
		part("builder", 10, func(p *up.PartHealth) {
			p.Ready, p.Why, p.Looping, p.LastLine = false, "exit status 3", true, "no disk"
		}),
		part("runner acme", 0, func(p *up.PartHealth) { p.Ready, p.Why = false, "not started" }),
	}}
	goldentest.File(t, "testdata/running.txt", strings.Join(local.StatusLines(running), "\n")+"\n")
	stopped := up.Status{Dir: "/data", Parts: running.Parts[3:]}
	goldentest.File(t, "testdata/stopped.txt", strings.Join(local.StatusLines(stopped), "\n")+"\n")
}

func TestWriteContext(t *testing.T) {
	t.Parallel()
	const tokens = "/data/token"
	for _, tc := range []struct{ name, current, tokens, want, note string }{
		{"the first context", "", "", local.Context, ""},
		{"it is the current one already", local.Context, tokens, local.Context, ""},
		{"that of another data folder", local.Context, "/other/token", local.Context,
			`the context "local" pointed to http://127.0.0.1:8800 with the token in /other/token; it points to this Berth now`},
		{"another one stays", "prod", tokens, "prod", `the current context is still "prod"; use --context local or berth context use local`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.json")
			file, err := contexts.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			file.Current = tc.current
			if tc.tokens != "" {
				file.Contexts[local.Context] = contexts.Context{URL: "http://127.0.0.1:8800", TokenFile: tc.tokens}
			}
			want := contexts.Context{URL: "http://127.0.0.1:8700", TokenFile: tokens}
			note, err := local.WriteContext(file, want)
			if err != nil || note != tc.note {
				t.Errorf("note %q, error %v; want %q", note, err, tc.note)
			}
			saved, err := contexts.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, saved.Contexts[local.Context]); diff != "" || saved.Current != tc.want {
				t.Errorf("current is %q, want %q (-want +got):\n%s", saved.Current, tc.want, diff)
			}
		})
	}
}
