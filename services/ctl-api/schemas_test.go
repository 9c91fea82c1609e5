package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

func TestSchemas(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	serveSchemas(engine)
	get := func(path string) *httptest.ResponseRecorder {
		t.Helper()
		answer := httptest.NewRecorder()
		engine.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer
	}
	var list struct{ Items []struct{ Name string } }
	if err := json.Unmarshal(get("/schemas").Body.Bytes(), &list); err != nil || len(list.Items) != len(schema.Kinds()) {
		t.Fatalf("the list: %+v, %v", list, err)
	}
	for _, kind := range list.Items {
		want, err := schema.Of(kind.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/schemas/" + kind.Name, "/schemas/" + kind.Name + ".json"} {
			answer := get(path)
			if answer.Code != http.StatusOK || answer.Body.String() != string(want) || answer.Header().Get("Content-Type") != "application/schema+json" {
				t.Errorf("GET %s: %d %v %.100s", path, answer.Code, answer.Header(), answer.Body)
			}
		}
	}
	if answer := get("/schemas/nothing"); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "there are full, metadata") {
		t.Errorf("an unknown kind: %d %s", answer.Code, answer.Body)
	}
}
