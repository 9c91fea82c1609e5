package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/cli/internal/command"
)

// forged begins a line that the program never writes by itself.
const forged = "FORGED"

// hostile is text that steers a terminal, reorders or hides what is read, and
// tries to pass for a line of the program.
const hostile = "x\x1b[2J\x1b]0;t\x07\x1b[8mhidden\u009b31m\u0085\x00\b\x7fseen\rover" +
	"\u202e\u202a\u2066\u2069\u200e\u200f\u061c\u200b\u200c\u200d\u2060\ufeff\u00ad\u2028\u2029" +
	"\U000e0001\U000e0041\ufe0f\U000e0100\u115f\u3164\n" + forged + " line"

// unsafe are the characters of the list that no terminal may get. It is written
// out here, not taken from the package under test.
var unsafe = regexp.MustCompile("[\\x00-\\x08\\x0b-\\x1f\\x7f\u0080-\u009f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f" +
	"\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]")

// speaker answers every request of a contract with hostile text in every field
// that holds text.
type speaker struct {
	url       string
	contracts []map[string]any
	// pick chooses among the values of enums; -1 takes none of them.
	pick int
}

func newSpeaker(t *testing.T, pick int) *speaker {
	t.Helper()
	s := &speaker{pick: pick}
	for _, service := range []string{"ctl-api", "log-ingest"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "services", service, "internal", "apigen", "openapi.json"))
		if err != nil {
			t.Fatal(err)
		}
		var contract map[string]any
		if err := json.Unmarshal(raw, &contract); err != nil {
			t.Fatal(err)
		}
		s.contracts = append(s.contracts, contract)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, contract := range s.contracts {
		operation := find(contract, r.Method, r.URL.Path)
		if operation == nil {
			continue
		}
		responses := at(operation, "responses")
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			if !strings.HasPrefix(status, "2") {
				continue
			}
			code := 0
			_, _ = fmt.Sscan(status, &code)
			content := at(resolve(contract, at(responses, status)), "content")
			switch {
			case at(content, "application/json") != nil:
				body, _ := json.Marshal(s.value(contract, at(at(content, "application/json"), "schema"), "", 0))
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write(body)
			case at(content, "text/event-stream") != nil:
				w.Header().Set("Content-Type", "text/event-stream")
				body, _ := json.Marshal(map[string]any{
					"seq": 1, "at": time.Now(), "time": time.Now(), "kind": "step", "text": hostile, "source": hostile,
					"body": map[string]any{"step": hostile, "state": hostile, "error": hostile, "actor": hostile, "wait": map[string]any{"reason": hostile}},
				})
				_, _ = fmt.Fprintf(w, "data: %s\n\nevent: end\n\n", body)
			default:
				w.WriteHeader(code)
			}
			return
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTeapot)
	body, _ := json.Marshal(map[string]any{
		"status": http.StatusTeapot, "title": hostile, "detail": hostile, "code": hostile, "remedy": hostile, "type": hostile,
		"errors": []any{map[string]any{"pointer": hostile, "message": hostile, "file": hostile, "line": 3}, map[string]any{"message": hostile}},
	})
	_, _ = w.Write(body)
}

func find(contract map[string]any, method, path string) map[string]any {
	paths := at(contract, "paths")
	for _, template := range slices.Sorted(maps.Keys(paths)) {
		pattern := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(template, `[^/]+`)
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			if operation := at(at(paths, template), strings.ToLower(method)); operation != nil {
				return operation
			}
		}
	}
	return nil
}

func at(v map[string]any, key string) map[string]any {
	m, _ := v[key].(map[string]any)
	return m
}

func resolve(contract, schema map[string]any) map[string]any {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		schema = contract
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			schema = at(schema, part)
		}
	}
}

// value makes a value of a schema.
func (s *speaker) value(contract, schema map[string]any, name string, depth int) any {
	schema = resolve(contract, schema)
	const deep = 8
	if depth > deep {
		return nil
	}
	switch name {
	case "next":
		return "" // one page
	case "log_url":
		return s.url
	case "sensitive", "continues", "plan_only":
		return false
	}
	if enum, ok := schema["enum"].([]any); ok && s.pick >= 0 {
		return enum[s.pick%len(enum)]
	}
	switch kind := schema["type"]; {
	case schema["allOf"] != nil:
		all := map[string]any{}
		for _, part := range schema["allOf"].([]any) {
			if m, ok := s.value(contract, part.(map[string]any), "", depth).(map[string]any); ok {
				maps.Copy(all, m)
			}
		}
		return all
	case kind == "object" || schema["properties"] != nil:
		object := map[string]any{}
		for key, property := range at(schema, "properties") {
			object[key] = s.value(contract, property.(map[string]any), key, depth+1)
		}
		switch more := schema["additionalProperties"].(type) {
		case map[string]any:
			object[hostile] = s.value(contract, more, "", depth+1)
		case bool:
			if more && len(object) == 0 {
				object[hostile] = hostile
			}
		}
		return object
	case kind == "array":
		item := s.value(contract, at(schema, "items"), "", depth+1)
		if item == nil {
			return []any{}
		}
		return []any{item, item}
	case kind == "integer" || kind == "number":
		return 3
	case kind == "boolean":
		return s.pick%2 == 0
	case schema["format"] == "date-time":
		return time.Now().Add(-time.Hour)
	case kind == "string":
		return hostile
	}
	return map[string]any{hostile: hostile} // anything goes
}

// commands are command lines for everything that shows what a server says; each
// leaf of the command tree is here or in ours.
func commandLines(dir string) [][]string {
	return [][]string{
		{"status"}, {"status", "acme"}, {"why", "acme"}, {"why", "wfl_1"}, {"why", "stp_1"}, {"why", "chg_1"}, {"why", "job_1"}, {"why", "arn_1"},
		{"logs", "acme"}, {"logs", "acme/api"}, {"logs", "wfl_1"}, {"logs", "chg_1"}, {"logs", "stp_1"}, {"logs", "bld_1"}, {"logs", "arn_1"},
		{"logs", "str_1"}, {"logs", "str_1", "--follow"}, {"logs", "str_1", "--timestamps"},
		{"approve", "chg_1"}, {"approve", "chg_1", "--auto-approve"}, {"approve", "--all", "wfl_1", "--auto-approve"}, {"deny", "chg_1"},
		{"changes", "list"}, {"changes", "show", "chg_1"}, {"changes", "show", "chg_1", "--text=false"},
		{"changes", "approve", "chg_1"}, {"changes", "deny", "chg_1"}, {"changes", "deny", "chg_1", "--skip"}, {"changes", "plan-again", "chg_1"}, {"changes", "list", "--waiting"},
		{"changes", "plan", "chg_1"}, {"changes", "capsule", "chg_1"}, {"changes", "capsule", "chg_1", "--raw"}, {"events", "--since", "0"}, {"changes", "list", "--install", "acme", "--resource", "api"}, {"configs", "graph", "cfg_1"}, {"installs", "graph", "acme"}, {"installs", "readme", "acme"},
		{"bulk", "list"}, {"bulk", "show", "blk_1"}, {"bulk", "deploy", "--app", "hello"}, {"bulk", "deploy", "--app", "hello", "--preview"},
		{"bulk", "pause", "--app", "hello", "--reason", "x"}, {"bulk", "resume", "--app", "hello", "--preview"}, {"approve", "--install", "acme", "--auto-approve"},
		{"approvals", "show", "--install", "acme"}, {"approvals", "set", "--app", "hello", "--approvals", "2"}, {"installs", "pause", "acme", "--reason", "x"}, {"installs", "resume", "acme"},
		{"policies", "list", "hello"}, {"policies", "report", "--install", "acme"}, {"policies", "override", "chg_1", "--reason", "x"},
		{"freezes", "list", "--install", "acme"}, {"freezes", "add", "--app", "hello", "--reason", "x", "--for", "1h"}, {"freezes", "remove", "frz_1", "--app", "hello"}, {"freezes", "override", "wfl_1", "--reason", "x"},
		{"resources", "list"}, {"runners", "jobs", "rnr_1"}, {"installs", "list", "--waiting", "any", "--expiring", "24h", "--sort", "health"},
		{"deploy", "acme"}, {"deploy", "acme", "--watch"}, {"deploy", "acme", "--plan"}, {"deploy", "acme", "--auto-approve"},
		{"rollback", "acme", "--to", "1"}, {"retry", "wfl_1"}, {"retry", "stp_1"}, {"skip", "wfl_1"}, {"skip", "stp_1"},
		{"workflows", "list"}, {"workflows", "show", "wfl_1"}, {"workflows", "watch", "wfl_1"}, {"workflows", "cancel", "wfl_1"},
		{"actions", "list", "acme"}, {"actions", "runs"}, {"actions", "show", "arn_1"}, {"metrics", "acme"}, {"metrics", "acme", "ser_1"}, {"actions", "run", "acme", "check"}, {"actions", "run-script", "acme", filepath.Join(dir, "metadata.toml")}, {"actions", "run-script", "acme", filepath.Join(dir, "metadata.toml"), "--watch"}, {"actions", "run", "acme", "check", "--watch"},
		{"apps", "list"}, {"apps", "show", "hello"}, {"apps", "create", "hello"}, {"apps", "delete", "hello"},
		{"apps", "variables", "list", "hello"}, {"apps", "variables", "show", "hello", "X"}, {"apps", "variables", "delete", "hello", "X"},
		{"apps", "variables", "set", "hello", "X=longenough", "--plain"},
		{"builds", "list"}, {"builds", "show", "bld_1"}, {"builds", "create", "hello"}, {"builds", "cancel", "bld_1"}, {"builds", "provenance", "bld_1"}, {"builds", "sbom", "bld_1"},
		{"configs", "list", "hello"}, {"configs", "show", "cfg_1"}, {"configs", "diff", "cfg_1", "cfg_2"},
		{"releases", "list", "hello"}, {"releases", "show", "rel_1"}, {"releases", "diff", "rel_1", "rel_2"}, {"releases", "create", "hello"}, {"releases", "sign", "rel_1", "--dry-run"}, {"releases", "revoke", "rel_1", "--reason", "recalled", "--dry-run"}, {"releases", "rotate-key", "hello", "--new-key", filepath.Join(dir, "metadata.toml")},
		{"customers", "list"}, {"customers", "show", "acme"}, {"customers", "create", "acme"},
		{"installs", "list"}, {"installs", "show", "acme"}, {"installs", "config", "acme"}, {"installs", "health", "acme"}, {"installs", "health", "acme", "--since", "7d"}, {"installs", "drift", "acme"}, {"installs", "drift", "acme", "api", "--now", "--timeout", "1ms"}, {"drift", "list"}, {"installs", "remediations", "acme"}, {"installs", "secrets", "acme"}, {"roles", "acme"},
		{"installs", "inputs", "acme"}, {"installs", "inputs", "acme", "--set", "a=b"}, {"installs", "resources", "acme"},
		{"installs", "stack", "acme"}, {"installs", "stack", "acme", "--new"}, {"installs", "state", "acme"}, {"installs", "state", "acme", "--versions"}, {"installs", "state", "acme", "--diff", "1", "2"},
		{"installs", "snapshot", "acme"}, {"installs", "snapshot", "acme", "--diff", "2h"}, {"history", "acme", "--before-failure"}, {"installs", "toggle", "acme", "api", "off"},
		{"installs", "create", "acme", "--app", "hello", "--customer", "acme"}, {"installs", "provision", "acme"},
		{"installs", "deprovision", "acme"}, {"installs", "reprovision", "acme"}, {"installs", "teardown", "acme", "api"}, {"installs", "forget", "acme"}, {"installs", "sync-secrets", "acme"}, {"installs", "sync", dir, "--plan"}, {"installs", "sync", dir, "--auto-approve"},
		{"orgs", "list"}, {"orgs", "chain", filepath.Join(dir, "vendor.jsonl")}, {"orgs", "create", "umbrella"},
		{"runners", "list"}, {"runners", "versions", "list"}, {"runners", "versions", "remove", "1.5.0"}, {"runners", "update", "acme", "--to", "1.5.0", "--plan"}, {"runners", "show", "rnr_1"}, {"runners", "replace", "acme"}, {"runners", "revoke", "rnr_1"},
		{"states", "list", "acme"}, {"states", "list", "acme", "api"}, {"states", "history", "acme", "api"}, {"states", "show", "acme", "api"},
		{"states", "pull", "acme", "api"}, {"states", "unlock", "acme", "api"},
		{"alerts", "list"}, {"alerts", "list", "--all"}, {"alerts", "show", "alt_1"}, {"alerts", "ack", "alt_1", "--note", "x"}, {"alerts", "mutes"}, {"alerts", "mute", "alt_1", "--for", "1h", "--reason", "x"},
		{"alerts", "unmute", "mut_1"}, {"incidents", "list"}, {"incidents", "show", "inc_1"},
		{"alarms", "list"}, {"alarms", "list", "--all"}, {"alarms", "acknowledge", "alm_1", "--reason", "looked"},
		{"webhooks", "list"}, {"webhooks", "show", "pager"}, {"webhooks", "create", "pager", "--url", "https://hooks.example.com"}, {"webhooks", "update", "pager", "--disable"},
		{"webhooks", "update", "pager", "--rotate-secret"}, {"webhooks", "delete", "pager"}, {"webhooks", "deliveries", "pager"},
		{"webhooks", "replay", "pager", "--dead"}, {"webhooks", "test", "pager", "--timeout", "50ms"},
		{"tokens", "list"}, {"tokens", "create", "ci"}, {"tokens", "revoke", "tok_1"},
		{"sessions", "list"}, {"sessions", "revoke", "bss_1"}, {"ui", "--print"},
		{"registry", "token"}, {"registry", "login", "--config", filepath.Join(dir, "docker.json")},
		{"approve", "acme"}, {"approve", "acme/api", "--auto-approve"}, {"deny", "acme"}, {"retry", "acme/api"}, {"workflows", "show", "acme"},
		{"changes", "show", "acme"}, {"logs"}, {"deploy", "--label", "a=b"}, {"rollback", "acme"}, {"rollback", "acme/api"},
		{"history", "acme"}, {"outputs", "acme"}, {"outputs", "acme", "api"}, {"diff", "acme"}, {"diff", "rel_1", "rel_2"},
		{"members", "list"}, {"members", "create", "bot", "--role", "viewer"}, {"members", "remove", "bot"}, {"installs", "set", "acme", "label=a=b"},
		{"ps"}, {"ls"}, {"whoami"}, {"plan", "acme"}, {"watch", "acme"}, {"cancel", "acme"}, {"get", "installs"}, {"describe", "acme"},
		{"list"}, {"show", "acme"}, {"inputs", "acme"}, {"health", "acme"}, {"provision", "acme"}, {"run", "acme", "restart"}, {"toggle", "acme", "api", "off"}, {"set", "acme", "approval=prompt"}, {"reject", "chg_1"},
		{"variables", "list", "hello"},
		{"sync", dir, "--plan"}, {"sync", dir, "--wait"}, {"sync", dir}, {"rehearse", dir},
		{"context", "show"}, {"doctor"},
		{"api", "/me"}, {"api", "/changes/chg_1"}, {"api", "/workflows/wfl_1/events"}, {"api", "/no/such/route"},
	}
}

// ours are the commands that show nothing of a server's.
var ours = []string{
	"apps fmt", "apps graph", "apps init", "apps lint", "apps permissions", "apps render", "apps schema", "apps validate", // files of the caller
	"context add", "context list", "context remove", "context use", "version", "man", "up", "down", "front", "registry logout", "runners versions add", "releases keygen", "plugins new", "plugins pack", "plugins push", "plugins sign", "plugins test", "policies check", "policies test",
	"create", "delete", "destroy", "events", "exec", "login", "open", "fmt", "graph", "init", "lint", "render", "schema", "validate", // words of other tools
	"apply", "components", "deprovision", "pause", "remove", "resume", "rm", "secrets", "teardown", "uninstall", "update", "upgrade",
}

// notForPrograms print the same, whatever -o says: lines of a log, events, a file
// in TOML, or one word on what was done.
var notForPrograms = []string{"alerts unmute", "freezes remove", "logs", "api /workflows/wfl_1/events", "installs config", "installs forget", "apps delete", "apps variables delete",
	"tokens revoke", "sessions revoke", "members remove", "sync", "rehearse"}

// Every command is shown a server that says nothing but hostile text, in each
// output format: nothing of it reaches the terminal as it is, and no line of it
// passes for the program's. Of the later values of enums each command meets a part, and
// with BERTH_HOSTILE=all all of them, which takes minutes.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "app")
	if code, _, stderr := berth(t, nil, "apps", "init", dir); code != 0 {
		t.Fatal(stderr)
	}
	const part = 4
	all := os.Getenv("BERTH_HOSTILE") == "all"
	for pick := -1; pick < 15; pick++ { // the longest enum has 14 values
		s := newSpeaker(t, pick)
		env := map[string]string{"BERTH_URL": s.url, "BERTH_TOKEN": "bat_x", "HOME": dir, "PATH": os.Getenv("PATH")}
		formats := []string{"table", "wide"}
		if pick <= 0 {
			formats = append(formats, "json", "yaml", "name")
		}
		for _, format := range formats {
			for i, args := range commandLines(dir) {
				if pick > 0 && !all && (i+pick)%part != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d/%s/%s", pick, format, strings.Join(args, " ")), func(t *testing.T) {
					t.Parallel()
					args := append(slices.Clone(args), "-o", format)
					if slices.Contains(args, "--watch") || slices.Contains(args, "watch") || slices.Contains(args, "--wait") || slices.Contains(args, "--auto-approve") {
						args = append(args, "--timeout", "300ms")
					}
					_, stdout, stderr := berth(t, env, args...)
					if stdout+stderr == "" {
						t.Fatal("it says nothing: what is tested?")
					}
					harmless(t, "stdout", stdout, format != "yaml")
					harmless(t, "stderr", stderr, true)
					switch line := strings.Join(args, " "); {
					case slices.ContainsFunc(notForPrograms, func(command string) bool { return strings.HasPrefix(line, command) }):
					case format == "json":
						reads(t, stdout, json.Unmarshal)
					case format == "yaml":
						reads(t, stdout, func(data []byte, v any) error { return yaml.Unmarshal(data, v) })
					}
				})
			}
		}
	}
}

func harmless(t *testing.T, stream, text string, lines bool) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8: %q", stream, text)
	}
	if where := unsafe.FindStringIndex(text); where != nil {
		t.Errorf("%s: %q reaches the terminal: %q", stream, text[where[0]:where[1]], around(text, where[0]))
	}
	if i := strings.Index("\n"+text, "\n"+forged); lines && i >= 0 {
		t.Errorf("%s: a line passes for the program's: %q", stream, around(text, i))
	}
}

func around(text string, i int) string { return text[max(0, i-120):min(len(text), i+60)] }

// reads checks that escaping changed nothing for programs.
func reads(t *testing.T, text string, unmarshal func([]byte, any) error) {
	t.Helper()
	if text == "" || !strings.Contains(text, "x") {
		return
	}
	var tree any
	if err := unmarshal([]byte(text), &tree); err != nil {
		t.Errorf("not readable: %v\n%s", err, text)
		return
	}
	if _, isText := tree.(string); isText {
		return // a line for people
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(hostile)
	if bytes.Contains(encoded, []byte("FORGED")) && !bytes.Contains(encoded, want[1:len(want)-1]) {
		t.Errorf("programs get another text than the server sent: %.300q", encoded)
	}
}

// TestHostileServerMeetsEveryCommand: a new command is tested too.
func TestHostileServerMeetsEveryCommand(t *testing.T) {
	t.Parallel()
	c := &cli{&command.CLI{Getenv: func(string) string { return "" }}}
	root := c.root()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "berth ")
		if cmd.HasSubCommands() || slices.Contains(ours, path) {
			return
		}
		if !slices.ContainsFunc(commandLines("."), func(args []string) bool { return strings.HasPrefix(strings.Join(args, " ")+" ", path+" ") }) {
			t.Errorf("berth %s is not run against the hostile server: add it to commandLines, or to ours when it shows nothing of a server's", path)
		}
	}
	walk(root)
}
