package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const secretValue = "s3cr3t-of-nobody"

// variablesServer answers as the control plane does and says what it was asked.
func variablesServer(t *testing.T) (env map[string]string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	updated := time.Now().Add(-3 * time.Minute)
	token := ctlapi.AppVariable{
		Name: "token", Sensitive: true, Version: 4, UpdatedBy: "ada", UpdatedAt: updated,
		ReadBy: []ctlapi.AppVariableReader{{Kind: ctlapi.AppVariableReaderKindComponent, Name: "api"}, {Kind: ctlapi.AppVariableReaderKindAction, Name: "look"}},
	}
	region := ctlapi.AppVariable{Name: "region", Value: api.Optional("eu"), Version: 2, UpdatedBy: "bob", UpdatedAt: updated, ReadBy: []ctlapi.AppVariableReader{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case strings.HasSuffix(r.URL.Path, "/variables"):
			listed := region
			listed.Value = nil
			answer = ctlapi.AppVariablePage{Items: []ctlapi.AppVariable{listed, token}}
		case strings.HasSuffix(r.URL.Path, "/region"):
			answer = region
		default:
			answer = token
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}, asked
}

// berthReads runs one command line with something on stdin.
func berthReads(t *testing.T, env map[string]string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, command.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err}, func(name string) string { return env[name] })
	return code, out.String(), err.String()
}

func TestSetVariable(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "value")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	long := strings.Repeat("a", (64 << 10))
	put := func(value string, sensitive bool) string {
		return fmt.Sprintf(`PUT /apps/hello/variables/token {"sensitive":%t,"value":%q}`, sensitive, value)
	}
	for _, tc := range []struct {
		name  string
		stdin string
		args  []string
		asked string // "" when nothing may be sent
		says  string
	}{
		{"stdin, without the line break", secretValue + "\n", []string{"token"}, put(secretValue, true), "token is read by api, action look; berth deploy INSTALL"},
		{"a line break of Windows", secretValue + "\r\n", []string{"token"}, put(secretValue, true), ""},
		{"a short one", "1234567\n", []string{"token"}, put("1234567", true), "warning: Berth does not redact secrets shorter than 8 bytes from logs"},
		{"only one line break goes", secretValue + "\n\n", []string{"token"}, put(secretValue+"\n", true), ""},
		{"a file", "", []string{"token", "--from-file", file("a\nb\n")}, put("a\nb", true), ""},
		{"an empty file", "", []string{"token", "--from-file", file("")}, put("", true), ""},
		{"plain on stdin", "eu", []string{"token", "--plain"}, put("eu", false), ""},
		{"plain argument", "", []string{"token=a=b", "--plain"}, put("a=b", false), ""},
		{"plain and empty", "", []string{"token=", "--plain"}, put("", false), ""},
		{"the longest", long + "\n", []string{"token"}, put(long, true), ""},
		{"too long", long + "b\n", []string{"token"}, "", "longer than 64 KiB"},
		{"a file that is too long", "", []string{"token", "--from-file", file(long + "b\n")}, "", "longer than 64 KiB"},
		{"a secret as an argument", "", []string{"token=" + secretValue}, "", "pass token on stdin or with --from-file, or use --plain"},
		{"twice", "", []string{"token=" + secretValue, "--plain", "--from-file", file("x")}, "", "has two values"},
		{"no name", "", []string{"=" + secretValue, "--plain"}, "", "no name"},
		{"nothing on stdin", "", []string{"token"}, "", "no value: pass token on stdin"},
		{"bytes that are no text", secretValue + "\xff", []string{"token"}, "", "not text"},
		{"a zero byte", secretValue + "\x00", []string{"token"}, "", "not text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			env, asked := variablesServer(t)
			code, stdout, stderr := berthReads(t, env, tc.stdin, append([]string{"apps", "variables", "set", "hello"}, tc.args...)...)
			want, wantCode := []string{}, command.ExitUsage
			if tc.asked != "" {
				want, wantCode = []string{tc.asked}, 0
			}
			if diff := cmp.Diff(want, *asked); diff != "" || code != wantCode {
				t.Errorf("exit code %d, want %d; asked (-want +got):\n%.500s", code, wantCode, diff)
			}
			if !strings.Contains(stderr, tc.says) {
				t.Errorf("says %q, want %q in it", stderr, tc.says)
			}
			if strings.Contains(stdout+stderr, secretValue) {
				t.Errorf("it shows the value:\n%s%s", stdout, stderr)
			}
		})
	}
}

func TestVariablesAreShown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args   []string
		asked  string
		stdout string
	}{
		{[]string{"list", "hello"}, "GET /apps/hello/variables",
			"NAME     SENSITIVE   READ BY            AGE     BY\nregion   no          -                  3 min   bob\ntoken    yes         api, action look   3 min   ada\n"},
		{[]string{"show", "hello", "region"}, "GET /apps/hello/variables/region",
			"name        region\nvalue       eu\nsensitive   no\nread by     -\nage         3 min\nby          bob\nversion     2\n"},
		{[]string{"show", "hello", "token"}, "GET /apps/hello/variables/token",
			"name        token\nvalue       (sensitive)\nsensitive   yes\nread by     api, action look\nage         3 min\nby          ada\nversion     4\n"},
		{[]string{"list", "hello", "-o", "name"}, "GET /apps/hello/variables", "region\ntoken\n"},
		{[]string{"show", "hello", "token", "--json", "name,sensitive"}, "GET /apps/hello/variables/token", "{\n  \"name\": \"token\",\n  \"sensitive\": true\n}\n"},
		{[]string{"delete", "hello", "token"}, "DELETE /apps/hello/variables/token", "deleted variable token of hello\n"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			env, asked := variablesServer(t)
			code, stdout, stderr := berth(t, env, append([]string{"app", "variable"}, tc.args...)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if diff := cmp.Diff([]string{tc.asked}, *asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stdout, stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if tc.args[0] == "delete" && !strings.Contains(stderr, "token is read by api, action look, which cannot be deployed without it") {
				t.Errorf("says %q", stderr)
			}
		})
	}
}
