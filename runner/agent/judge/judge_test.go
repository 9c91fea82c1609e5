package judge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/judge"
)

// executable is berth-policy, as `make build` made it.
func executable(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("BERTH_LIBEXEC")
	if dir == "" {
		dir = "../../../.bin"
	}
	path, err := filepath.Abs(filepath.Join(dir, "berth-policy"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no berth-policy: run `make build`")
	}
	return path
}

func newEngine(t testing.TB, change ...func(*judge.Options)) *judge.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := judge.Options{Executable: executable(t), Launcher: self, Memory: 1 << 30}
	if os.Geteuid() == 0 {
		o.UID = 86001
	}
	for _, c := range change {
		c(&o)
	}
	e := judge.New(o)
	t.Cleanup(e.Close)
	return e
}

func regoRules(name, text string) policy.Rules {
	return policy.Rules{Name: name, Language: policy.Rego, Text: "package berth\n" + text, File: name + ".rego"}
}

func cel(name, expression string) policy.Rules {
	return policy.Rules{Name: name, Language: policy.Kyverno, File: name + ".yaml", Text: fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: %s
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}
  validations:
  - message: refused
    expression: >-
      %s
`, name, expression)}
}

func configMap(name string) policy.Document {
	return policy.Document{
		Form: policy.FormObject, Of: "kubernetes_manifest", Component: "rules", Name: "ConfigMap shop/" + name, Operation: policy.Create,
		Body: json.RawMessage(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop"},"data":{"a":"b"}}`, name)),
	}
}

var (
	fine = regoRules("fine", `deny contains "never" if input.review.object.kind == "Pod"`)
	no   = regoRules("no", `deny contains "always" if true`)
)

// results are the verdicts by policy and document.
func results(t *testing.T, e *judge.Engine, r policy.Request) (map[string]policy.Result, []policy.Verdict) {
	t.Helper()
	reply, err := e.Ask(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(reply.Engine, "Kyverno ") || !strings.Contains(reply.Engine, "OPA ") {
		t.Errorf("the engine calls itself %q", reply.Engine)
	}
	out := map[string]policy.Result{}
	for _, v := range reply.Verdicts {
		out[v.Policy+" "+strings.TrimPrefix(v.Document, "ConfigMap shop/")] = v.Result
	}
	return out, reply.Verdicts
}

func TestAsk(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	r := policy.Request{
		Rules:     []policy.Rules{fine, no, cel("some", "object.metadata.name != 'b'")},
		Documents: []policy.Document{configMap("a"), configMap("b")},
	}
	got, _ := results(t, e, r)
	want := map[string]policy.Result{
		"fine a": policy.Pass, "fine b": policy.Pass, "no a": policy.Fail, "no b": policy.Fail, "some a": policy.Pass, "some b": policy.Fail,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, weak := e.Isolation()
	t.Log(text)
	if weak && os.Geteuid() == 0 {
		t.Errorf("root, and %s", text)
	}
	// Nothing to ask starts nothing.
	if reply, err := judge.New(judge.Options{Executable: "/nowhere"}).Ask(t.Context(), policy.Request{Documents: r.Documents}); err != nil || len(reply.Verdicts) > 0 {
		t.Errorf("without rules: %+v, %v", reply, err)
	}
	if _, err := judge.New(judge.Options{Executable: "/nowhere"}).Ask(t.Context(), r); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without an engine: %v", err)
	}
}

// Questions that come at once are answered one after the other, each with its own answer.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			name := fmt.Sprintf("c%d", n)
			reply, err := e.Ask(t.Context(), policy.Request{Rules: []policy.Rules{no}, Documents: []policy.Document{configMap(name)}})
			want := []policy.Verdict{{Policy: "no", Rule: "deny", Document: "ConfigMap shop/" + name, Component: "rules", Result: policy.Fail, On: policy.Deny, Message: "always"}}
			if diff := cmp.Diff(want, reply.Verdicts); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		})
	}
	all.Wait()
}

// A policy costs its own verdict, whatever it does, and no other.
func TestHostilePolicies(t *testing.T) {
	t.Parallel()
	const exponential = `deny contains msg if {
	a := numbers.range(1, 4000)
	x := a[_]; y := a[_]; z := a[_]
	x * y * z == 0
	msg := "found"
}`
	deep := strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)
	for _, tc := range []struct {
		name string
		evil policy.Rules
	}{
		{"loops in Rego", regoRules("evil", exponential)},
		{"allocates without end", regoRules("evil", `deny contains msg if {
	a := numbers.range(1, 30000000)
	b := [sprintf("%d %d", [x, y]) | x := a[_]; y := a[_]]
	msg := sprintf("%d", [count(b)])
}`)},
		{"allocates 10 GB in a few calls", regoRules("evil", "deny contains msg if {\n\tx0 := \"aaaaaaaaaa\"\n"+doublings(9)+"\tmsg := x9\n}")},
		{"writes a million results", regoRules("evil", `deny contains msg if { some i in numbers.range(1, 1000000); msg := sprintf("no %d", [i]) }`)},
		{"loops in CEL", cel("evil", `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, [1,2,3,4,5,6,7,8,9,10].all(h, a+b+c+d+e+f+g+h < 1000))))))))`)},
		{"nests deeply", regoRules("evil", "deny contains msg if { x := "+deep+"; msg := sprintf(\"%v\", [x]) }")},
		{"is no YAML that ends", policy.Rules{Name: "evil", Language: policy.Kyverno, Text: bomb()}},
		{"matches for ever", regoRules("evil", `deny contains "x" if regex.match("(((a{0,1000}){0,1000}){0,1000})*b", "aaaa")`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			r := policy.Request{
				Rules:     []policy.Rules{fine, tc.evil, no},
				Documents: []policy.Document{configMap("a"), configMap("b"), configMap("c"), configMap("d"), configMap("e")},
			}
			began := time.Now()
			got, verdicts := results(t, e, r)
			t.Logf("%d verdicts in %s", len(verdicts), time.Since(began).Round(time.Millisecond))
			want := map[string]policy.Result{}
			for _, d := range []string{"a", "b", "c", "d", "e"} {
				want["fine "+d], want["no "+d], want["evil "+d] = policy.Pass, policy.Fail, policy.Error
			}
			if diff := cmp.Diff(want, got); diff != "" || len(verdicts) != len(want) {
				t.Errorf("(-want +got):\n%s\n%v", diff, verdicts)
			}
			for _, v := range verdicts {
				if v.Policy == "evil" && v.Document == "ConfigMap shop/a" {
					t.Log(v.Message)
				}
			}
			// And the next question is answered as if nothing had been.
			after, _ := results(t, e, policy.Request{Rules: []policy.Rules{no}, Documents: r.Documents[:1]})
			if diff := cmp.Diff(map[string]policy.Result{"no a": policy.Fail}, after); diff != "" {
				t.Errorf("afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

// doublings make a string ten times as long, n times.
func doublings(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "\tx%d := replace(x%d, \"a\", \"aaaaaaaaaa\")\n", i, i-1)
	}
	return b.String()
}

// bomb is YAML that is large when its aliases are put in.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	return b.String()
}

// What the engine could reach if its own care failed: nothing.
func TestWalls(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	results(t, e, policy.Request{Rules: []policy.Rules{no}, Documents: []policy.Document{configMap("a")}})
	if text, weak := e.Isolation(); weak {
		t.Skip(text)
	}
	pid := e.PIDForTest()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join("/proc", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if os.Geteuid() == 0 { // of a child with other rights, only root may see this
		entries, err := os.ReadDir(filepath.Join("/proc", pid, "root"))
		if err != nil || len(entries) > 0 {
			t.Errorf("its root has %v, %v", entries, err)
		}
		if environ := read("environ"); environ != "" {
			t.Errorf("its environment is %q", environ)
		}
		devices := read("net/dev")
		if strings.Count(devices, ":") != 1 || !strings.Contains(devices, "lo:") {
			t.Errorf("its network devices are\n%s", devices)
		}
		if routes := strings.TrimSpace(read("net/route")); strings.Count(routes, "\n") != 0 {
			t.Errorf("its routes are\n%s", routes)
		}
	}
	status := read("status")
	want := []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n"}
	if os.Geteuid() == 0 {
		want = append(want, "Uid:\t86001\t86001\t86001\t86001\n", "Gid:\t86001\t86001\t86001\t86001\n", "Groups:\t \n")
	}
	for _, line := range want {
		if !strings.Contains(status, line) {
			t.Errorf("its status has no %q:\n%s", line, status)
		}
	}
	e.Close()
	if _, err := os.Stat(filepath.Join("/proc", pid)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there after Close: %v", err)
	}
}

// Documents may be hostile too: a plan has what its provider wrote.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	nested := configMap("nested")
	nested.Body = json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"nested","namespace":"shop"},"data":` +
		strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000) + "}")
	list := configMap("list")
	list.Body = json.RawMessage(`[]`)
	empty := configMap("empty")
	empty.Body = nil
	r := policy.Request{Rules: []policy.Rules{no, cel("some", "has(object.data)")}, Documents: []policy.Document{nested, list, empty, configMap("a")}}
	got, _ := results(t, e, r)
	want := map[string]policy.Result{
		"no a": policy.Fail, "some a": policy.Pass, "no list": policy.Error, "some list": policy.Error, "no empty": policy.Error, "some empty": policy.Error,
	}
	ignore := cmpopts.IgnoreMapEntries(func(pair string, r policy.Result) bool { return strings.HasSuffix(pair, " nested") })
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got) != len(want)+2 {
		t.Errorf("got %v", got)
	}
}

// Nothing reaches a network, a file or the environment, with walls and without.
func TestNothingLeaves(t *testing.T) {
	t.Parallel()
	var heard atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }), ReadHeaderTimeout: time.Second}
	server.ConnState = func(net.Conn, http.ConnState) { heard.Add(1) }
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	url := "http://" + l.Addr().String() + "/x"
	for _, walls := range []bool{true, false} {
		t.Run(fmt.Sprintf("walls %t", walls), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, func(o *judge.Options) {
				if !walls {
					o.Launcher, o.UID = "", 0
				}
			})
			got, verdicts := results(t, e, policy.Request{
				Rules: []policy.Rules{
					cel("http", "http.Get('"+url+"').ok == true"),
					cel("cluster", "resource.Get('v1', 'configmaps', 'shop', 'x').data.a == 'b'"),
					cel("image", "image.GetMetadata('"+l.Addr().String()+"/a:b').architecture == 'x'"),
					regoRules("send", `deny contains x if { x := http.send({"method": "get", "url": "`+url+`"}).raw_body }`),
					regoRules("name", `deny contains x if { some x in net.lookup_ip_addr("localhost") }`),
					regoRules("environment", `deny contains x if { some x in opa.runtime().env }`),
					{Name: "context", Language: policy.Kyverno, Text: apiCall(url)},
				},
				Documents: []policy.Document{configMap("a")},
			})
			if _, weak := e.Isolation(); weak == walls && os.Geteuid() == 0 {
				t.Errorf("walls: weak is %t", weak)
			}
			want := map[string]policy.Result{
				"http a": policy.Unknown, "cluster a": policy.Unknown, "image a": policy.Unknown, "context a": policy.Unknown,
				"send a": policy.Error, "name a": policy.Error, "environment a": policy.Error,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, verdicts)
			}
			if n := heard.Load(); n != 0 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

func apiCall(url string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: context
spec:
  rules:
  - name: ask
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: answer
      apiCall: {service: {url: "` + url + `"}, method: GET}
    validate:
      message: refused
      deny: {conditions: {any: [{key: "{{ answer || 'nothing' }}", operator: Equals, value: bad}]}}
`
}

// The engine ends with whoever asks, also while it works.
func TestEnds(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	many := make([]policy.Document, 200)
	for i := range many {
		many[i] = configMap(fmt.Sprint(i))
	}
	slow := regoRules("slow", `deny contains "x" if { a := numbers.range(1, 700); x := a[_]; y := a[_]; x * y == 0 }`)
	if _, err := e.Ask(ctx, policy.Request{Rules: []policy.Rules{slow}, Documents: many}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got, _ := results(t, e, policy.Request{Rules: []policy.Rules{no}, Documents: many[:1]})
	if diff := cmp.Diff(map[string]policy.Result{"no 0": policy.Fail}, got); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	e.Close()
	if _, err := e.Ask(t.Context(), policy.Request{Rules: []policy.Rules{no}, Documents: many[:1]}); !errors.Is(err, judge.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// An engine that nobody asks goes, and is there again when somebody does.
func TestIdle(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(o *judge.Options) { o.Idle = 50 * time.Millisecond })
	for range 3 {
		got, _ := results(t, e, policy.Request{Rules: []policy.Rules{no}, Documents: []policy.Document{configMap("a")}})
		if got["no a"] != policy.Fail {
			t.Errorf("got %v", got)
		}
		time.Sleep(100 * time.Millisecond) // longer than it may be idle
	}
}
