package main

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const (
	maxProductBytes = 64 << 10
	maxProducts     = 1000
)

// Product is something that is sold. Its name identifies it.
type Product struct {
	Name  string `json:"name"`
	Cents int64  `json:"cents"`
}

// problem says what is wrong with a product, "" when nothing is.
func (p Product) problem() string {
	switch {
	case strings.TrimSpace(p.Name) == "":
		return "a product needs a name"
	case p.Cents <= 0:
		return "a product costs more than nothing"
	}
	return ""
}

// Price is for people.
func (p Product) Price() string { return fmt.Sprintf("%d.%02d €", p.Cents/100, p.Cents%100) }

// Shop sells products. It is safe for concurrent use.
type Shop struct {
	title      string
	adminToken string
	visits     visits

	mu       sync.RWMutex
	products map[string]Product
}

// NewShop opens an empty shop. Without an admin token nobody may add products.
func NewShop(title, adminToken, sessionKey string) *Shop {
	return &Shop{title: title, adminToken: adminToken, visits: visits{key: []byte(sessionKey)}, products: map[string]Product{}}
}

// Add puts a product on sale, or gives it another price. It says whether the
// product is new, and whether there was room for it.
func (s *Shop) Add(p Product) (isNew, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.products[p.Name]
	if !known && len(s.products) >= maxProducts {
		return false, false
	}
	s.products[p.Name] = p
	return !known, true
}

// Products lists what is sold, by name.
func (s *Shop) Products() []Product {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.products), func(a, b Product) int { return cmp.Compare(a.Name, b.Name) })
}

// Handler serves the shop.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /products", s.list)
	mux.HandleFunc("POST /products", s.add)
	return mux
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<ul>
{{range .Products}}<li>{{.Name}}, {{.Price}}</li>
{{end}}</ul>
<p>This is your visit {{.Visit}}.</p>
</html>
`))

func (s *Shop) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	data := struct {
		Title    string
		Products []Product
		Visit    int
	}{s.title, s.Products(), s.visits.count(w, r)}
	if err := page.Execute(w, data); err != nil {
		slog.WarnContext(r.Context(), "page not written", "err", err)
	}
}

// health says in lines what a check wants to compare. Of the session key it
// gives a fingerprint, which shows whether it is the right one.
func (s *Shop) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	sum := sha256.Sum256(s.visits.key)
	fmt.Fprintf(w, "ok\ntitle: %s\nsession: %s\nproducts: %d\n", s.title, hex.EncodeToString(sum[:6]), len(s.Products()))
}

func (s *Shop) list(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.Products()) }

// add takes one product. Adding it again changes nothing.
func (s *Shop) add(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.adminToken == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.adminToken)) != 1 {
		http.Error(w, "only who has the admin token may add products", http.StatusUnauthorized)
		return
	}
	var p Product
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxProductBytes)).Decode(&p); err != nil {
		http.Error(w, `a product is {"name": "…", "cents": 100}`, http.StatusBadRequest)
		return
	}
	if problem := p.problem(); problem != "" {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	isNew, ok := s.Add(p)
	switch {
	case !ok:
		http.Error(w, fmt.Sprintf("the shop has room for %d products", maxProducts), http.StatusConflict)
	case isNew:
		answer(w, http.StatusCreated, p)
	default:
		answer(w, http.StatusOK, p)
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client that left gets no answer
}
