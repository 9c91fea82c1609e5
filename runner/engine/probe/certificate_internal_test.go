package probe

import (
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTellCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	file := filepath.Join(t.TempDir(), "outputs")
	tells := func(address string) string {
		t.Helper()
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		state := resp.TLS
		if target.Scheme == "http" {
			state = nil
		}
		tellCertificate(file, target, state)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	got := tells("https://user:canary@" + host + "/healthz?token=canary")
	if !strings.HasPrefix(got, `{"certificates":[{"place":"`+server.URL+`","subject":"example.com","fingerprint":"`) || strings.Contains(got, "canary") {
		t.Errorf("it tells %s", got)
	}
	if got := tells("http://" + host); got != `{"certificates":[]}` {
		t.Errorf("without TLS it tells %s", got)
	}
	tellCertificate("", &url.URL{}, resp.TLS)                                         // nowhere to tell it
	tellCertificate(filepath.Join(t.TempDir(), "not", "there"), &url.URL{}, resp.TLS) // nor here
}
