package reference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/reference"
)

var clients = reference.Of("ctl-api")

// contracts are those of this repository, by service.
func contracts(t *testing.T) map[string]*openapi3.T {
	t.Helper()
	files, err := filepath.Glob("../../*/internal/apigen/openapi.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no contracts found (%v): run make generate", err)
	}
	all := map[string]*openapi3.T{}
	for _, file := range files {
		spec, err := openapi3.NewLoader().LoadFromFile(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.Split(file, "/")[2]] = spec
	}
	return all
}

// published is the document that a service serves.
func published(t *testing.T, spec *openapi3.T, clients reference.Clients) *openapi3.T {
	t.Helper()
	raw, err := reference.Document(spec, "", clients)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Each JSON body has an example, and each example fits its schema.
func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for name, spec := range contracts(t) {
		doc := published(t, spec, clients)
		eachOperation(doc, func(_, _ string, op *openapi3.Operation) {
			for status, response := range op.Responses.Map() {
				for contentType, media := range response.Value.Content {
					checkExample(t, name+": "+op.OperationID+" "+status, contentType, media)
				}
			}
			if op.RequestBody != nil {
				for contentType, media := range op.RequestBody.Value.Content {
					checkExample(t, name+": "+op.OperationID+" body", contentType, media)
				}
			}
		})
		if err := doc.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checkExample(t *testing.T, at, contentType string, media *openapi3.MediaType) {
	t.Helper()
	if contentType != "application/json" {
		return
	}
	if media.Example == nil && len(media.Examples) == 0 {
		t.Errorf("%s has no example", at)
		return
	}
	examples := []any{media.Example}
	if media.Example == nil {
		examples = nil
	}
	for _, example := range media.Examples {
		examples = append(examples, example.Value.Value)
	}
	for _, example := range examples {
		if err := media.Schema.Value.VisitJSON(example, openapi3.MultiErrors()); err != nil {
			text, _ := json.Marshal(example)
			t.Errorf("%s: the example does not fit: %v\n%s", at, err, text)
		}
	}
}

func eachOperation(doc *openapi3.T, do func(method, path string, op *openapi3.Operation)) {
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			do(method, path, op)
		}
	}
}

func TestEachOperationNamesItsRefusals(t *testing.T) {
	t.Parallel()
	for name, spec := range contracts(t) {
		eachOperation(published(t, spec, clients), func(method, path string, op *openapi3.Operation) {
			want := []string{}
			if op.Security == nil || len(*op.Security) > 0 {
				want = append(want, "401", "403", "429")
			}
			if strings.Contains(path, "{") {
				want = append(want, "404")
			}
			if op.RequestBody != nil {
				want = append(want, "413", "422")
			}
			if method != http.MethodGet {
				want = append(want, "409")
			}
			for _, p := range op.Parameters {
				if p.Value.Name == "If-Match" {
					want = append(want, "412")
				}
			}
			for _, status := range want {
				if op.Responses.Value(status) == nil {
					t.Errorf("%s: %s %s does not name %s", name, method, path, status)
				}
			}
		})
	}
}

// samplesOf are the calls that a document shows under a label, by operation.
func samplesOf(t *testing.T, doc *openapi3.T, label string) map[string]string {
	t.Helper()
	all := map[string]string{}
	eachOperation(doc, func(_, _ string, op *openapi3.Operation) {
		raw, err := json.Marshal(op.Extensions["x-codeSamples"])
		var samples []struct{ Label, Source string }
		if err == nil {
			err = json.Unmarshal(raw, &samples)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range samples {
			if sample.Label == label {
				all[op.OperationID] = sample.Source
			}
		}
		if all[op.OperationID] == "" {
			t.Errorf("%s has no sample %q", op.OperationID, label)
		}
	})
	return all
}

// Each curl command is run by a shell; what it sends fits the contract, and the
// token is not among its arguments.
func TestCurlSamples(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	for name, spec := range contracts(t) {
		doc := published(t, spec, clients)
		router, err := gorillamux.NewRouter(doc)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		called := map[string]error{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route, params, err := router.FindRoute(r)
			if err == nil {
				err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
					Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
						MultiError:         true,
						AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
						ExcludeRequestBody: !strings.Contains(r.Header.Get("Content-Type"), "json"),
					},
				})
			}
			if err == nil && r.Header.Get("Authorization") != "Bearer brt_secret" {
				err = fmt.Errorf("the token arrived as %q", r.Header.Get("Authorization"))
			}
			mu.Lock()
			defer mu.Unlock()
			if route != nil {
				called[route.Operation.OperationID] = err
			} else {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
		}))
		t.Cleanup(server.Close)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "FILE"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		script.WriteString("uuidgen() { echo 0b6d5e2c-6f0c-4c57-9d0f-5d1f1a4c1a77; }\n") // Debian has it in a package of its own
		for id, sample := range samplesOf(t, doc, "curl") {
			if strings.Contains(sample, "brt_") || strings.Contains(sample, "-H \"Authorization") {
				t.Errorf("the token of %s is among the arguments:\n%s", id, sample)
			}
			script.WriteString(sample + " -s -o /dev/null\n")
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", script.String())
		command.Dir = dir
		command.Env = append(os.Environ(), "BERTH_URL="+server.URL, "BERTH_TOKEN=brt_secret")
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		eachOperation(doc, func(_, _ string, op *openapi3.Operation) {
			if err, ok := called[op.OperationID]; !ok || err != nil {
				t.Errorf("%s: %s was called: %v, %v", name, op.OperationID, ok, err)
			}
		})
	}
}

// The Go samples compile.
func TestGoSamples(t *testing.T) {
	t.Parallel()
	for service, pkg := range map[string]string{"ctl-api": "ctlapi", "log-ingest": "logapi"} {
		spec := contracts(t)[service]
		var source strings.Builder
		fmt.Fprintf(&source, "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"os\"\n\t\"strings\"\n\t\"time\"\n\n\t%q\n)\n\n"+
			"var (\n\t_ = os.Open\n\t_ = strings.NewReader\n\t_ = time.Now\n)\n\nfunc main() {}\n", "github.com/berth-dev/berth/pkg/"+pkg)
		for id, sample := range samplesOf(t, published(t, spec, reference.Of(service)), "Go") {
			fmt.Fprintf(&source, "\nfunc %s(ctx context.Context, client *%s.ClientWithResponses) error {\n%s\nreturn nil\n}\n",
				id, pkg, sample)
		}
		compile(t, source.String())
	}
}

// compile builds a program in this module, without writing it there.
func compile(t *testing.T, source string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	here, err := filepath.Abs("samples")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path.Join(here, "main.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{file: source, filepath.Join(dir, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", os.DevNull, "./samples").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// elsewhere is the address of an image, as a script gives it to the browser.
var elsewhere = regexp.MustCompile(`src:"https?://[^"]*"`)

var address = regexp.MustCompile(`(src|href)="([^"]*)"`)

// The page runs its own two scripts and nothing else, and loads nothing from
// anybody else.
func TestAttackPage(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	spec := contracts(t)["ctl-api"]
	spec.Info.Title = `</title><script>alert(1)</script>`
	reference.Serve(engine, spec, "", clients)
	get := func(path, etag string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("If-None-Match", etag)
		engine.ServeHTTP(w, r)
		return w
	}
	page := get("/reference", "")
	if strings.Contains(page.Body.String(), "<script>") {
		t.Error("a title becomes a script")
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'nonce-") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %s", policy)
	}
	if again := get("/reference", "").Header().Get("Content-Security-Policy"); again == policy {
		t.Error("two pages have the same nonce")
	}
	links := address.FindAllStringSubmatch(page.Body.String(), -1)
	if len(links) < 2 {
		t.Fatalf("the page has %d links: redoc is not in this build; run dev/scripts/assets.sh", len(links))
	}
	for _, link := range links {
		file := get("/"+link[2], "")
		if file.Code != http.StatusOK || file.Body.Len() == 0 {
			t.Errorf("%s answers %d: redoc is in the build with dev/scripts/assets.sh", link[2], file.Code)
		}
		if other := elsewhere.FindString(file.Body.String()); other != "" {
			t.Errorf("%s takes an image from another site, which the browser refuses and says so: %s", link[2], other)
		}
		if again := get("/"+link[2], file.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s again answers %d", link[2], again.Code)
		}
	}
}
