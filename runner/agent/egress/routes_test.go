package egress

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// notOurs are calls of log-ingest that other services make.
var notOurs = []string{"GET /streams/{stream}", "GET /streams/{stream}/records", "GET /streams/{stream}/tail"}

type operation struct {
	OperationID string `json:"operationId"`
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

// A call that is added to runner-api needs a class; this test names it.
func TestEveryCallHasAClass(t *testing.T) {
	t.Parallel()
	var known []string
	for _, r := range routes {
		if _, ok := Find(r.class); !ok {
			t.Errorf("%s %s has the unknown class %q", r.method, r.path, r.class)
		}
		known = append(known, r.method+" "+r.path)
		path := strings.NewReplacer("{job}", "job1", "{run}", "arn1", "{resource}", "component:lock", "{stream}", "str1").Replace(r.path)
		got, ok := classify(httptest.NewRequest(r.method, "https://vendor.example/some/prefix"+path, nil))
		if !ok || got.class != r.class || got.schema != schemaOf(r) {
			t.Errorf("%s %s is %+v, want class %s", r.method, path, got, r.class)
		}
	}
	var served []string
	for _, name := range []string{"runner-api", "log-ingest"} {
		text, err := os.ReadFile("../../../openapi/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var api struct {
			Paths map[string]map[string]json.RawMessage `json:"paths"`
		}
		if err := yaml.Unmarshal(text, &api); err != nil {
			t.Fatal(err)
		}
		for path, item := range api.Paths {
			for method, raw := range item {
				var op operation
				if method == "parameters" || json.Unmarshal(raw, &op) != nil {
					continue
				}
				call := strings.ToUpper(method) + " " + path
				served = append(served, call)
				i := slices.IndexFunc(routes, func(r route) bool { return r.method+" "+r.path == call })
				if i < 0 {
					if !slices.Contains(notOurs, call) {
						t.Errorf("%s (%s) has no egress class: add it to routes", call, op.OperationID)
					}
					continue
				}
				for kind, content := range op.RequestBody.Content {
					if want := filepath.Base(content.Schema.Ref); kind == "application/json" && want != routes[i].schema {
						t.Errorf("%s has the schema %q, want %q", call, routes[i].schema, want)
					}
				}
			}
		}
	}
	for _, call := range slices.Concat(known, notOurs) {
		if !slices.Contains(served, call) {
			t.Errorf("%s is not served by anybody", call)
		}
	}
}

func TestEveryClassSaysWhatHappensWithoutIt(t *testing.T) {
	t.Parallel()
	for _, c := range Classes() {
		if c.What == "" || (c.Off == "") == (c.Why == "") {
			t.Errorf("%s: it says either what happens without it, or why it cannot be off", c.Name)
		}
	}
}

// elsewhere are the places in the agent that make a way out of their own, with why
// the ledger does not see it.
var elsewhere = map[string]string{
	"buildkit/service.go":    "a socket on this machine",
	"enginepod/launch.go":    "a socket on this machine",
	"cluster/client.go":      "the customer's own cluster",
	"control/client.go":      "what the ledger's client is made of",
	"control/transport.go":   "wraps the ledger's client",
	"hostproxy/proxy.go":     "a plugin's bytes, to hosts that it was granted: the job's log tells of them",
	"registry/access.go":     "the listener of the install's own registry",
	"toolchain/box.go":       "what the ledger's client is made of",
	"toolchain/sources.go":   "a field for the ledger's client",
	"cloudcluster/clouds.go": "the ledger's client in an agent, see agent/egress.go",
	"egress/transport.go":    "the ledger itself",
	"egress.go":              "what the ledger's client is made of",
}

// A way out that does not pass the ledger is found here.
func TestAttackClientWithoutTheLedger(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, found := range waysOut(t, os.DirFS("..")) {
		file, _, _ := strings.Cut(found, ":")
		if elsewhere[file] == "" {
			t.Errorf("%s does not pass the egress ledger: use the client of egress.Ledger", found)
		}
		used[file] = true
	}
	for file := range elsewhere {
		if !used[file] {
			t.Errorf("%s has no way out any more: remove it from the list", file)
		}
	}
}

// The search itself finds what it has to.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := "package x\nimport (\"net\"; web \"net/http\")\nvar a = &web.Client{}\nvar b = web.DefaultClient\nfunc c() { _, _ = web.Get(\"\"); _, _ = net.Dial(\"\", \"\"); _ = new(net.Dialer) }\n"
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := waysOut(t, os.DirFS(dir)); len(got) != 5 {
		t.Errorf("found %v, want five", got)
	}
}

// waysOut lists where code names something of net/http or net that opens connections.
func waysOut(t *testing.T, root fs.FS) (found []string) {
	t.Helper()
	out := map[string][]string{
		"net/http":   {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Post", "Head", "PostForm"},
		"net":        {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP", "Dialer"},
		"crypto/tls": {"Dial", "DialWithDialer", "Dialer"},
	}
	set := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			return err
		}
		names := map[string][]string{}
		for _, i := range file.Imports {
			from := strings.Trim(i.Path.Value, `"`)
			name := filepath.Base(from)
			if i.Name != nil {
				name = i.Name.Name
			}
			names[name] = out[from]
		}
		seen := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := sel.X.(*ast.Ident); ok && slices.Contains(names[of.Name], sel.Sel.Name) {
				at := path + ": " + of.Name + "." + sel.Sel.Name
				if !seen[at] {
					found = append(found, at)
				}
				seen[at] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
