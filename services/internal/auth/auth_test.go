package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

const contract = `
openapi: 3.0.3
info: {title: Boats, version: "1"}
paths:
  /boats:
    get: {operationId: listBoats, responses: {"200": {description: All.}}}
    post:
      operationId: createBoat
      requestBody: {content: {application/json: {schema: {type: object}}}}
      responses: {"201": {description: It.}}
  /enrol:
    post: {operationId: enrol, responses: {"200": {description: In.}}}
`

var routes = auth.Routes{"listBoats": auth.InstallsRead, "createBoat": auth.InstallsWrite, "enrol": auth.Public}

// keyring knows principals by their token.
type keyring map[string]auth.Principal

func (k keyring) Authenticate(_ context.Context, bearer string) (auth.Principal, error) {
	p, ok := k[bearer]
	if !ok {
		return auth.Principal{}, auth.ErrBadToken
	}
	return p, nil
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	secret, _, _ := auth.NewToken()
	principal := func(role auth.Role) auth.Principal {
		return auth.Principal{Kind: auth.KindUser, OrgID: "org_1", AccountID: "acc_" + string(role), Grants: []auth.Grant{{Role: role}}}
	}
	keys := keyring{
		"operator": principal(auth.RoleOperator),
		"viewer":   principal(auth.RoleViewer),
		"platform": principal(auth.RolePlatform),
		"runner":   {Kind: auth.KindRunner, OrgID: "org_1", RunnerID: "run_1"},
		"nobody":   {},
	}
	s := newServer(t, routes.Authorize(loadContract(t), keys))
	tests := []struct {
		name, method, path, header string
		want                       int
		code                       string
	}{
		{"an operator writes", "POST", "/boats", "Bearer operator", 201, ""},
		{"a viewer reads", "GET", "/boats", "bearer viewer", 200, ""},
		{"a viewer does not write", "POST", "/boats", "Bearer viewer", 403, "forbidden"},
		{"who makes orgs sees nothing in them", "GET", "/boats", "Bearer platform", 403, "forbidden"},
		{"a runner is not a person", "GET", "/boats", "Bearer runner", 403, "forbidden"},
		{"the zero principal may do nothing", "GET", "/boats", "Bearer nobody", 403, "forbidden"},
		{"an unknown token", "GET", "/boats", "Bearer x", 401, "unauthenticated"},
		{"no token", "GET", "/boats", "", 401, "unauthenticated"},
		{"another scheme", "GET", "/boats", "Basic operator", 401, "unauthenticated"},
		{"a token in the URL", "GET", "/boats?token=" + secret, "", 422, "token_in_url"},
		{"a token in the URL, next to a good one", "GET", "/boats?x=" + secret, "Bearer viewer", 422, "token_in_url"},
		{"a public operation needs none", "POST", "/enrol", "", 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := do(t, s, tt.method, tt.path, "", map[string]string{"Authorization": tt.header})
			var problem fault.Problem
			if answer.Code >= 400 {
				if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil {
					t.Fatal(err)
				}
			}
			if answer.Code != tt.want || problem.Code != tt.code {
				t.Errorf("got %d %q, want %d %q", answer.Code, problem.Code, tt.want, tt.code)
			}
			if strings.Contains(answer.Body.String(), secret) {
				t.Error("the answer repeats the secret")
			}
		})
	}
}

func TestRoutesMustFitTheContract(t *testing.T) {
	t.Parallel()
	defer func() {
		got, _ := recover().(string)
		want := "auth: table of routes: GET /boats (listBoats) has no permission; POST /boats (createBoat) has no permission; sinkBoat is not an operation"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("panic (-want +got):\n%s", diff)
		}
	}()
	auth.Routes{"enrol": auth.Public, "sinkBoat": auth.InstallsWrite}.Authorize(loadContract(t), keyring{})
}

// Every permission that an operation can ask for is held by somebody, and the
// dangerous ones by few.
func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[auth.Permission][]auth.Role{
		auth.OrgsCreate:     {auth.RolePlatform},
		auth.MembersWrite:   {auth.RoleAdmin},
		auth.TokensWrite:    {auth.RoleAdmin},
		auth.ChangesDecide:  {auth.RoleAdmin, auth.RoleOperator, auth.RoleCustomer},
		auth.InstallsWrite:  {auth.RoleAdmin, auth.RoleOperator},
		auth.WorkflowsWrite: {auth.RoleAdmin, auth.RoleOperator},
		auth.RunnersWrite:   {auth.RoleAdmin, auth.RoleOperator},
		auth.InstallsRead:   {auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer, auth.RoleCustomer},
		auth.AppsRead:       {auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer},
		auth.LogsRead:       {auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer, auth.RoleCustomer},
		auth.LogsWrite:      {auth.RoleLog},
		auth.JobsWork:       {auth.RoleRunner},
	}
	all := []auth.Role{auth.RolePlatform, auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer, auth.RoleCustomer, auth.RoleRunner, auth.RoleLog}
	for permission, roles := range want {
		var got []auth.Role
		for _, role := range all {
			if role.Allows(permission) {
				got = append(got, role)
			}
		}
		if diff := cmp.Diff(roles, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", permission, diff)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	plain, hash, prefix := auth.NewToken()
	if !regexp.MustCompile(`^brt_[0-9A-Za-z]{43}$`).MatchString(plain) {
		t.Errorf("token %q has not the form brt_ and 43 characters", plain)
	}
	if !strings.HasPrefix(plain, prefix) || len(prefix) != 8 {
		t.Errorf("prefix %q of %q", prefix, plain)
	}
	other, _, _ := auth.NewToken()
	if plain == other || !bytes.Equal(auth.Hash(plain), hash) || bytes.Equal(auth.Hash(other), hash) {
		t.Error("a hash must match its own token only")
	}
	for s, want := range map[string]bool{plain: true, plain + "x": false, "brs_" + plain[4:]: false, plain[:46] + "-": false, "": false} {
		if got := auth.WellFormed(auth.TokenPrefix, s); got != want {
			t.Errorf("WellFormed(%q) = %v, want %v", s, got, want)
		}
	}
}

// memory is an auth.Memory that lasts as long as the test.
type memory struct {
	mu   sync.Mutex
	kept map[string]auth.Remembered
}

func (m *memory) Begin(_ context.Context, a auth.Attempt) (*auth.Remembered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := a.Principal.OrgID + a.Principal.ID() + a.Key
	if known, ok := m.kept[key]; ok {
		return &known, nil
	}
	m.kept[key] = auth.Remembered{Route: a.Route, BodyHash: a.BodyHash}
	return nil, nil
}

func (m *memory) Finish(_ context.Context, a auth.Attempt, answer auth.Remembered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[a.Principal.OrgID+a.Principal.ID()+a.Key] = answer
	return nil
}

func (m *memory) Abandon(_ context.Context, a auth.Attempt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, a.Principal.OrgID+a.Principal.ID()+a.Key)
	return nil
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	keys := keyring{
		"ann": {Kind: auth.KindUser, OrgID: "org_1", AccountID: "acc_ann", Grants: []auth.Grant{{Role: auth.RoleAdmin}}},
		"bob": {Kind: auth.KindUser, OrgID: "org_1", AccountID: "acc_bob", Grants: []auth.Grant{{Role: auth.RoleAdmin}}},
	}
	m := &memory{kept: map[string]auth.Remembered{}}
	s := newServer(t, routes.Authorize(loadContract(t), keys), auth.Idempotent(m))
	type answer struct {
		Status   int
		Body     string
		Replayed string
	}
	post := func(token, key, body string) answer {
		got := do(t, s, "POST", "/boats", body, map[string]string{"Authorization": "Bearer " + token, auth.IdempotencyHeader: key})
		text := got.Body.String()
		var problem fault.Problem
		if got.Code >= 400 && json.Unmarshal(got.Body.Bytes(), &problem) == nil {
			text = problem.Code
		}
		return answer{Status: got.Code, Body: text, Replayed: got.Header().Get(auth.ReplayedHeader)}
	}
	steps := []struct {
		name             string
		token, key, body string
		want             answer
	}{
		{"the first time", "ann", "k1", `{"a":1}`, answer{201, `1 {"a":1}`, ""}},
		{"again: the same answer, nothing done", "ann", "k1", `{"a":1}`, answer{201, `1 {"a":1}`, "true"}},
		{"another body", "ann", "k1", `{"a":2}`, answer{409, "idempotency_key_reused", ""}},
		{"another key", "ann", "k2", `{"a":1}`, answer{201, `2 {"a":1}`, ""}},
		{"somebody else's key of the same name", "bob", "k1", `{"b":1}`, answer{201, `3 {"b":1}`, ""}},
		{"a failure is not kept", "ann", "k3", `{"fail":true}`, answer{409, "conflict", ""}},
		{"so it may be tried again", "ann", "k3", `{"a":3}`, answer{201, `5 {"a":3}`, ""}},
		{"without a key everything is new", "ann", "", `{"a":1}`, answer{201, `6 {"a":1}`, ""}},
		{"a key that is too long", "ann", strings.Repeat("k", 129), `{}`, answer{422, "invalid", ""}},
	}
	for _, step := range steps { // in order: each builds on those before
		if diff := cmp.Diff(step.want, post(step.token, step.key, step.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	hash := auth.Hash("{}")
	m.kept["org_1acc_annbusy"] = auth.Remembered{Route: "POST /boats", BodyHash: hash}
	if diff := cmp.Diff(answer{Status: 409, Body: "idempotency_key_busy"}, post("ann", "busy", "{}")); diff != "" {
		t.Errorf("while the first one is at work (-want +got):\n%s", diff)
	}
}

func newServer(t *testing.T, middleware ...gin.HandlerFunc) *httpserver.Server {
	t.Helper()
	s := httpserver.New(httpserver.Config{Name: "test", Log: slog.New(slog.DiscardHandler), Spec: loadContract(t), Middleware: middleware})
	s.Router().GET("/boats", func(c *gin.Context) { c.Status(http.StatusOK) })
	s.Router().POST("/enrol", func(c *gin.Context) { c.Status(http.StatusOK) })
	var calls int
	var mu sync.Mutex
	s.Router().POST("/boats", func(c *gin.Context) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		body, err := io.ReadAll(c.Request.Body)
		switch {
		case err != nil:
			httpserver.RequestError(c, err)
		case bytes.Contains(body, []byte("fail")):
			httpserver.HandlerError(c, fault.Newf(fault.ErrConflict, "no"))
		default:
			c.Data(http.StatusCreated, "application/json", append([]byte(strconv.Itoa(calls)+" "), body...))
		}
	})
	return s
}

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	spec, err := openapi3.NewLoader().LoadFromData([]byte(contract))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func do(t *testing.T, s *httpserver.Server, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, req)
	return answer
}
