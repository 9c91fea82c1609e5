package berth_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// The service sends clients to somebody else, who would like their token, or
// only what they send.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var stolen atomic.Int32
			thief := service(t, func(w http.ResponseWriter, _ *http.Request) {
				stolen.Add(1)
				reply(w, http.StatusOK, `{}`)
			})
			server := service(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, thief.URL+"/"+r.Header.Get("Authorization"), status)
			})
			c := client(t, server)
			_, errGet := c.GetMeWithResponse(t.Context())
			_, errPost := c.CreateAppWithResponse(t.Context(), &ctlapi.CreateAppParams{}, ctlapi.AppRequest{Name: "hello"})
			for _, err := range []error{errGet, errPost} {
				var notBerth *berth.NotBerth
				if !errors.As(err, &notBerth) || notBerth.To != thief.URL || strings.Contains(err.Error(), token) {
					t.Errorf("got %v, want an error that names %s and no token", err, thief.URL)
				}
			}
			if n := stolen.Load(); n > 0 {
				t.Errorf("the other host got %d requests", n)
			}
		})
	}
}

func TestRedirectThatStays(t *testing.T) {
	t.Parallel()
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/me":
			http.Redirect(w, r, "/v1/me", http.StatusPermanentRedirect)
		case "/v1/me":
			reply(w, http.StatusOK, fmt.Sprintf(`{"account":{"name":%q}}`, r.Header.Get("Authorization")))
		default: // in circles
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}
	})
	c := client(t, server)
	if resp, err := c.GetMeWithResponse(t.Context()); err != nil || !strings.Contains(string(resp.Body), token) {
		t.Errorf("got %v, %v", resp, err)
	}
	var problem *berth.Problem
	if _, err := c.GetAppWithResponse(t.Context(), "x"); !errors.As(err, &problem) || problem.Status != http.StatusFound {
		t.Errorf("in circles: got %v", err)
	}
}

// A generated client that was given another address.
func TestAttackOtherAddress(t *testing.T) {
	t.Parallel()
	thief := service(t, func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") })
	sender, err := berth.NewSender(berth.Options{URL: "http://127.0.0.1:1", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	c, err := berth.Through(thief.URL, sender)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetMeWithResponse(t.Context()); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("got %v", err)
	}
}

// No error and no way of printing what a program has shows the token.
func TestAttackTokenInErrors(t *testing.T) {
	t.Parallel()
	echo := service(t, func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/me":
			reply(w, http.StatusBadRequest, fmt.Sprintf(`{"title":%q,"status":400,"code":%q,"detail":%q,"remedy":%q,"request_id":%q,"errors":[{"message":%q}]}`, auth, auth, auth, auth, auth, auth))
		case "/orgs":
			reply(w, http.StatusBadGateway, auth)
		default:
			w.Header().Set("Location", "http://"+strings.TrimPrefix(auth, "Bearer ")+":x/") // which is no URL
			w.WriteHeader(http.StatusFound)
		}
	})
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	brief := func(o *berth.Options) { o.Patience = -1 }
	c := client(t, echo, brief)
	_, refused := c.GetMeWithResponse(t.Context())
	_, proxied := c.ListOrgsWithResponse(t.Context())
	_, sent := c.GetAppWithResponse(t.Context(), "x")
	_, unreachable := client(t, away, brief).GetMeWithResponse(t.Context())
	_, broken := berth.New(berth.Options{URL: echo.URL, Token: token + "\r\nX: y"})
	_, withPassword := berth.New(berth.Options{URL: "http://me:" + token + "@127.0.0.1", Token: token})
	_, noURL := berth.New(berth.Options{URL: "http://[" + token, Token: token})
	for name, err := range map[string]error{
		"refused": refused, "proxied": proxied, "sent": sent, "unreachable": unreachable,
		"broken": broken, "with a password": withPassword, "no URL": noURL,
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		shows(t, name, err)
		var problem *berth.Problem
		if errors.As(err, &problem) {
			shows(t, name, *problem)
		}
	}
	shows(t, "options", berth.Options{URL: "http://me:" + token + "@127.0.0.1", Token: token})
	shows(t, "client", c)
	shows(t, "client itself", *c)
}

// shows fails when a way of printing something shows the token.
func shows(t *testing.T, name string, v any) {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	_ = json.NewEncoder(&log).Encode(v)
	_, _ = fmt.Fprintf(&log, "%v %+v %#v %s", v, v, v, v)
	if strings.Contains(log.String(), token) {
		t.Errorf("%s shows the token: %s", name, log.String())
	}
}

// Answers without an end take no more memory than is allowed, packed ones too.
func TestAttackEndlessAnswer(t *testing.T) {
	t.Parallel()
	endless := func(w io.Writer) {
		block := bytes.Repeat([]byte(" "), 1<<20)
		for range 128 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w)
		},
		"packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			endless(z)
			_ = z.Close()
		},
		"text": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			endless(w)
		},
		"a problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			endless(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, service(t, handler), func(o *berth.Options) { o.MaxAnswer = 4 << 20 })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.GetMeWithResponse(t.Context())
			runtime.ReadMemStats(&after)
			var tooLarge *berth.TooLarge
			if !errors.As(err, &tooLarge) || tooLarge.Limit > 4<<20 {
				t.Errorf("got %v, want an answer that is too large", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

func TestOptionsThatCannotBeRight(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]berth.Options{
		"nothing":    {},
		"no token":   {URL: "http://127.0.0.1"},
		"no URL":     {Token: token},
		"no scheme":  {URL: "berth.example.com", Token: token},
		"a file":     {URL: "file:///etc/passwd", Token: token},
		"a password": {URL: "https://me:secret@berth.example.com", Token: token},
		"a query":    {URL: "https://berth.example.com/?x", Token: token},
	} {
		if _, err := berth.New(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	env := map[string]string{"BERTH_URL": "https://berth.example.com", "BERTH_TOKEN": token, "BERTH_ORG": "initech"}
	opts := berth.FromEnvironment(func(name string) string { return env[name] })
	if _, err := berth.New(opts); err != nil || opts.URL != env["BERTH_URL"] || opts.Token != token || opts.Org != "initech" {
		t.Errorf("from the environment: %v, %v", opts, err)
	}
}
