package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// send gives a request to a shop.
func send(s *Shop, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestAdd(t *testing.T) {
	t.Parallel()
	const admin = "Authorization: Bearer sesame"
	tests := []struct {
		name   string
		header string
		body   string
		status int
		sold   int
	}{
		{"a new product", admin, `{"name": "rope", "cents": 1250}`, http.StatusCreated, 2},
		{"the same again", admin, `{"name": "anchor", "cents": 9900}`, http.StatusOK, 1},
		{"without a token", "X: y", `{"name": "rope", "cents": 1250}`, http.StatusUnauthorized, 1},
		{"with another token", "Authorization: Bearer open", `{"name": "rope", "cents": 1250}`, http.StatusUnauthorized, 1},
		{"without a name", admin, `{"cents": 1250}`, http.StatusBadRequest, 1},
		{"for nothing", admin, `{"name": "rope"}`, http.StatusBadRequest, 1},
		{"no product", admin, `rope`, http.StatusBadRequest, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shop := NewShop("Harbour", "sesame", "key")
			shop.Add(Product{Name: "anchor", Cents: 9900})
			if w := send(shop, http.MethodPost, "/products", tt.body, tt.header); w.Code != tt.status {
				t.Errorf("answer is %d %q, want %d", w.Code, w.Body, tt.status)
			}
			if got := len(shop.Products()); got != tt.sold {
				t.Errorf("%d products are sold, want %d", got, tt.sold)
			}
		})
	}
}

func TestNobodyAddsWithoutAnAdminToken(t *testing.T) {
	t.Parallel()
	shop := NewShop("Harbour", "", "key")
	if w := send(shop, http.MethodPost, "/products", `{"name": "rope", "cents": 1}`, "Authorization: Bearer "); w.Code != http.StatusUnauthorized {
		t.Errorf("answer is %d, want 401", w.Code)
	}
}

func TestAFullShopTakesNoMore(t *testing.T) {
	t.Parallel()
	shop := NewShop("Harbour", "sesame", "key")
	for i := range maxProducts {
		shop.Add(Product{Name: strings.Repeat("i", i+1), Cents: 1})
	}
	if w := send(shop, http.MethodPost, "/products", `{"name": "rope", "cents": 1}`, "Authorization: Bearer sesame"); w.Code != http.StatusConflict {
		t.Errorf("a new product: %d, want 409", w.Code)
	}
	if w := send(shop, http.MethodPost, "/products", `{"name": "i", "cents": 2}`, "Authorization: Bearer sesame"); w.Code != http.StatusOK {
		t.Errorf("another price: %d, want 200", w.Code)
	}
}

func TestListIsSorted(t *testing.T) {
	t.Parallel()
	shop := NewShop("Harbour", "sesame", "key")
	shop.Add(Product{Name: "rope", Cents: 1250})
	shop.Add(Product{Name: "anchor", Cents: 9900})
	var got []Product
	if err := json.Unmarshal(send(shop, http.MethodGet, "/products", "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := []Product{{"anchor", 9900}, {"rope", 1250}}; !slices.Equal(got, want) {
		t.Errorf("list is %v, want %v", got, want)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	got := send(NewShop("Harbour", "sesame", "key"), http.MethodGet, "/healthz", "").Body.String()
	// The beginning of sha256("key").
	if want := "ok\ntitle: Harbour\nsession: 2c70e12b7a06\nproducts: 0\n"; got != want {
		t.Errorf("health is\n%swant\n%s", got, want)
	}
	if strings.Contains(got, "sesame") {
		t.Error("health tells the admin token")
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	shop := NewShop("Rope & Sons", "sesame", "key")
	shop.Add(Product{Name: "<b>", Cents: 1205})
	first := send(shop, http.MethodGet, "/", "")
	for _, want := range []string{"<h1>Rope &amp; Sons</h1>", "&lt;b&gt;, 12.05 €", "visit 1."} {
		if !strings.Contains(first.Body.String(), want) {
			t.Errorf("the page does not have %q:\n%s", want, first.Body)
		}
	}
	cookie := first.Result().Cookies()[0]
	second := NewShop("another pod", "sesame", "key")
	if got := send(second, http.MethodGet, "/", "", "Cookie: visits="+cookie.Value).Body.String(); !strings.Contains(got, "visit 2.") {
		t.Errorf("another pod with the same key does not believe the cookie:\n%s", got)
	}
	forged := "9" + cookie.Value
	if got := send(shop, http.MethodGet, "/", "", "Cookie: visits="+forged).Body.String(); !strings.Contains(got, "visit 1.") {
		t.Errorf("a forged cookie is believed:\n%s", got)
	}
}

func TestReadProducts(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, problem string }{
		{"a list", `[{"name": "rope", "cents": 1250}]`, ""},
		{"no list", `{"name": "rope"}`, "not a list of products"},
		{"a product without a price", `[{"name": "rope"}]`, "costs more than nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "products.json")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := readProducts(file)
			if (err == nil) != (tt.problem == "") || (err != nil && !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("error is %v, want %q", err, tt.problem)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	if err := probe(t.Context(), server.URL); err != nil {
		t.Errorf("probe: %v", err)
	}
	if asked != 2 {
		t.Errorf("asked %d times, want twice", asked)
	}
}
