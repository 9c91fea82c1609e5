package dashboard

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Others on this machine see the arguments of programs: the secret is in a page that only
// its owner can read.
func TestBrowserIsOpenedWithoutTheSecretInItsArguments(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the opener is a script for xdg-open")
	}
	dir := t.TempDir()
	seen := filepath.Join(dir, "arguments")
	script := "#!/bin/sh\necho \"$@\" > " + seen + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	getenv := func(name string) string { return map[string]string{"HOME": dir, "DISPLAY": ":0"}[name] }
	const link = "http://127.0.0.1:8700/ui/login#bwl_secret"
	page, err := pageFor(getenv, link)
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t.Context(), getenv, page); err != nil {
		t.Fatal(err)
	}
	arguments, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(arguments)), "file://"+page; got != want {
		t.Errorf("xdg-open was run with %s, want %s", got, want)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), `content="0; url=`+link+`"`) {
		t.Errorf("the page is %s %v", text, err)
	}
	if info, err := os.Stat(page); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the page: %v %v", info.Mode(), err)
	}

	if err := open(t.Context(), func(string) string { return "" }, page); err == nil {
		t.Error("a browser is opened without a screen")
	}
}

func TestLinksThatAreNone(t *testing.T) {
	t.Parallel()
	getenv := func(string) string { return t.TempDir() }
	for _, link := range []string{"javascript:alert(1)", "file:///etc/passwd", "", "--help"} {
		if _, err := pageFor(getenv, link); err == nil {
			t.Errorf("%q was taken", link)
		}
	}
	page, err := pageFor(getenv, `http://x/"><script>alert(1)</script>`)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(page); strings.Contains(string(text), "<script>") {
		t.Errorf("the page is %s", text)
	}
}
