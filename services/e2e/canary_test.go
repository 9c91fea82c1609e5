package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// secretText is spelled differently in each encoding, and so is plainText,
	// which goes the same ways but is no secret: it has to be found.
	secretText = "canary/4c1e+77d0&do not=look?or tell"
	plainText  = "marker/5a3c+9b1e&anybody may=see?and tell"

	// variableText is a secret that every install of the app gets: a variable.
	variableText = "variable/91d2+03fa&not for=any?customers eyes"
)

// TestCanary lets a component and an action do everything that they can to give
// a secret away, and then looks for it in everything that there is outside of
// the customer's own directory.
func TestCanary(t *testing.T) {
	t.Parallel()
	s := start(t, "OTEL_TRACES_EXPORTER=console", "OTEL_BSP_SCHEDULE_DELAY=200", "BERTH_LOG_LEVEL=debug")
	in := s.probe("acme")
	db := s.database()

	in.loosen()
	if err := in.call(http.MethodPut, "/installs/acme/inputs", map[string]any{"values": map[string]string{"canary": secretText}}, nil); err != nil {
		t.Fatal(err)
	}
	in.change("fail")
	w := in.finished(in.deploy(true, "two").ID, time.Minute)
	if w.State != "failed" || !strings.Contains(in.explain(w), "app.variables.token") {
		t.Fatalf("a component that reads a variable that nobody has set did not fail so: %s", in.explain(w))
	}
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte(variableText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("apps", "variables", "set", "probe", "token", "--from-file", secret)
	s.must("apps", "variables", "set", "probe", "motto="+plainText, "--plain")
	w = in.finished(in.deploy(true, "one").ID, time.Minute)
	if w.State != "failed" || !strings.Contains(in.explain(w), "on purpose") {
		t.Fatalf("the component did not fail: %s", in.explain(w))
	}
	in.change(plainText)
	w = in.finished(in.deploy(true, "one", "two", "three").ID, 2*time.Minute)
	if w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if got, want := in.output("three")["secret_sha256"], sha256Hex("derived-"+sha256Hex(secretText)+"-"+secretText); got != want {
		t.Fatalf("the dependent component got another secret: hash %v, want %s", got, want)
	}
	if got, want := in.output("two")["secret_sha256"], sha256Hex(variableText); got != want {
		t.Fatalf("the component that reads the variable got another value: hash %v, want %s", got, want)
	}
	for _, component := range []string{"one", "two"} {
		if got := in.output(component)["harmless"]; got != "(sealed)" {
			t.Errorf("an output of %s that is called harmless and shows the secret is given out as %v", component, got)
		}
	}
	in.eventually(2*time.Minute, "the check ran by its schedule with the secret", func() error {
		var n int
		err := db.QueryRow(t.Context(), `select count(*) from berth.action_runs r join berth.log_streams l on l.run_id = r.id
			where r.trigger = 'cron' and r.state <> 'running' and l.state = 'finished'`).Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("no run yet")
		}
		return err
	})
	in.eventually(goOnTimeout, "nothing runs any more", func() error {
		left, err := os.ReadDir(filepath.Join(in.runnerDir(), "jobs"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d job directories are left", len(left))
		}
		return err
	})

	places := map[string]*search{}
	in.searchAnswers(t, db, placeOf(places, "API"))
	in.searchCommands(t, db, w.ID, placeOf(places, "commands"))
	searchDatabase(t, db, placeOf(places, "database"))
	in.searchFiles(t, func(path string) *search {
		switch top, _, _ := strings.Cut(path, "/"); top {
		case "log", "registry", "runners", "builder", "postgres":
			return placeOf(places, top)
		default:
			return placeOf(places, "other files")
		}
	})

	for _, name := range slices.Sorted(maps.Keys(places)) {
		p := places[name]
		t.Logf("%s: %d pieces, %d bytes", name, p.pieces, p.bytes)
		for _, where := range p.found[canary] {
			t.Errorf("the first secret is in the %s: %s", name, where)
		}
		for _, where := range p.found[secretText] {
			t.Errorf("the secret is in the %s: %s", name, where)
		}
		for _, where := range p.found[variableText] {
			t.Errorf("the variable is in the %s: %s", name, where)
		}
	}
	// The secret was really said, and what is no secret went the same ways, so
	// the search would have found it.
	log := s.must("logs", "acme/one")
	for _, line := range []string{"out raw: (redacted)", "err raw: (redacted)", "out hex: (redacted)", "out raw: " + plainText} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not have %q:\n%s", line, tail(log, 30))
		}
	}
	if log := s.must("logs", "acme/two"); !strings.Contains(log, "out raw: (redacted)") || !strings.Contains(log, "out raw: v2") {
		t.Errorf("the log of the component that reads the variable does not have it redacted:\n%s", tail(log, 30))
	}
	for name, want := range map[string][]string{
		"API":      {"json", "base64 +0", "base64 +1", "base64 +2", "hex", "url query"},
		"commands": {"raw", "base64 +0", "base64 +1", "base64 +2", "hex", "url query"},
		"database": {"raw", "base64 +0", "base64 +1", "base64 +2", "hex", "url query"},
		"registry": {"raw", "base64 +0", "hex"},
	} {
		for _, form := range want {
			if !slices.ContainsFunc(places[name].found[plainText], func(where string) bool { return strings.HasSuffix(where, "("+form+")") }) {
				t.Errorf("the search does not find what is no secret as %s in the %s", form, name)
			}
		}
	}
	for _, where := range []string{"GET /apps/probe/variables/motto (json)", "berth apps variables show probe motto -o table (raw)"} {
		if !slices.ContainsFunc([]string{"API", "commands"}, func(name string) bool { return slices.Contains(places[name].found[plainText], where) }) {
			t.Errorf("the plain variable is not in %s", where)
		}
	}
	if !places["log"].spans {
		t.Error("there are no traces in the logs of the processes")
	}
}

// loosen makes the app give its secret away wherever it can: in what it prints,
// in errors, in outputs that it calls harmless, in what a plan shows.
func (in *install) loosen() {
	in.t.Helper()
	module := filepath.Join(in.app, "src", "work", "main.tf")
	edit(in.t, module, "input            = { dir = var.dir, name = var.name, value = var.value }",
		"input            = { dir = var.dir, name = var.name, value = var.value, leak = nonsensitive(var.secret) }")
	edit(in.t, module, "  provisioner \"local-exec\" {\n    when        = destroy", `  provisioner "local-exec" {
    interpreter = ["bash", "-c"]
    command     = <<-EOT
      set -e
      say() {
        echo "$1 raw: $2"
        echo "$1 base64: $3"
        printf '%s hex: %s\n' "$1" "$(printf %s "$2" | od -An -v -tx1 | tr -d ' \n')"
      }
      for text in '${nonsensitive(var.secret)}' '${var.value}'; do
        say out "$text" "$(printf %s "$text" | base64 -w0) $(printf 'x%s' "$text" | base64 -w0) $(printf 'xy%s' "$text" | base64 -w0)"
        say err "$text" "$(printf %s "$text" | base64 -w0)" >&2
      done
      echo '${urlencode(nonsensitive(var.secret))}' '${urlencode(var.value)}'
      echo '${jsonencode({ secret = nonsensitive(var.secret), value = var.value })}'
      if [ '${var.value}' = fail ]; then echo 'fails on purpose with ${nonsensitive(var.secret)}' >&2; exit 1; fi
    EOT
  }
  provisioner "local-exec" {
    when        = destroy`)
	data, err := os.ReadFile(module)
	if err == nil {
		data = append(data, "\noutput \"harmless\" { value = nonsensitive(var.secret) }\n"+
			"# "+plainText+"\n# "+base64.StdEncoding.EncodeToString([]byte(plainText))+"\n# "+hex.EncodeToString([]byte(plainText))+"\n"...)
		err = os.WriteFile(module, data, 0o644)
	}
	if err != nil {
		in.t.Fatal(err)
	}
	two := filepath.Join(in.app, "components", "two.toml")
	edit(in.t, two, `secret = ""`, `secret = "{{ .nuon.app.variables.token }}"`)
	edit(in.t, two, `value  = "v1"`, `value  = "v2"`) // makes its provisioner run
	check := filepath.Join(in.app, "actions", "alive.toml")
	edit(in.t, check, "echo alive", `echo \"$SECRET $TOKEN\" && echo \"$TOKEN\" && echo \"$SECRET\" >&2 && echo \"said=$SECRET\" >>\"$BERTH_ACTIONS_OUTPUT_FILEPATH\" && printf 'said{secret=\"%s\",token=\"%s\"} 1\\nalive 1\\n' \"$SECRET\" \"$TOKEN\" >>\"$BERTH_METRICS\"`)
	edit(in.t, check, "[steps.env_vars]", "[steps.env_vars]\nSECRET = \"{{ .nuon.inputs.inputs.canary }}\"\nTOKEN = \"{{ with .nuon.app.variables }}{{ .token }}{{ end }}\"")
}

// searchDatabase reads every row of every table.
func searchDatabase(t *testing.T, db *pgxpool.Pool, s *search) {
	t.Helper()
	tables := column(t, db, `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%' order by 1`)
	if len(tables) < 40 {
		t.Errorf("only %d tables: %v", len(tables), tables)
	}
	for _, table := range tables {
		rows, err := db.Query(t.Context(), `select row_to_json(t)::text from `+table+` t`)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		for _, text := range texts {
			s.look(table, []byte(text))
		}
	}
}

// searchFiles reads every file of the system but for the customer's own: the
// install's directory.
func (in *install) searchFiles(t *testing.T, placeOf func(path string) *search) {
	t.Helper()
	customers := filepath.Join(in.runnerDir(), "install")
	err := filepath.WalkDir(in.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // Postgres and agents go on
		case err != nil:
			return err
		case path == customers:
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(in.dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			placeOf(rel).look(rel, data)
		} else if os.IsNotExist(err) {
			err = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// searchAll looks at all answers, the database and the files outside of the customer's
// directory, by place.
func (in *install) searchAll(t *testing.T, db *pgxpool.Pool) map[string]*search {
	t.Helper()
	places := map[string]*search{}
	in.searchAnswers(t, db, placeOf(places, "API"))
	searchDatabase(t, db, placeOf(places, "database"))
	in.searchFiles(t, func(path string) *search {
		top, _, _ := strings.Cut(path, "/")
		return placeOf(places, top)
	})
	return places
}

// searchAnswers calls every GET route of both APIs with everything that there
// is. A parameter that is not known here fails the test.
func (in *install) searchAnswers(t *testing.T, db *pgxpool.Pool, s *search) {
	t.Helper()
	ids := map[string][]string{
		"install": {in.name}, "app": {"probe"}, "customer": {in.name}, "chain": {in.id},
		"variable": column(t, db, `select name from berth.app_variables order by name`),
		"resource": column(t, db, `select name from berth.resources where kind <> 'stack' order by name`),
		"object": column(t, db, `select id from berth.workflows union all select id from berth.steps union all select id from berth.changes
			union all select id from berth.runner_jobs union all select id from berth.action_runs`),
	}
	if len(column(t, db, `select id from berth.webhooks`)) == 0 {
		in.post("/webhooks", ctlapi.WebhookRequest{Name: "nobody", URL: "https://nobody.invalid/events"}, nil)
	}
	if len(column(t, db, `select id from berth.bulk_operations`)) == 0 { // one that starts nothing while we look
		if _, err := db.Exec(t.Context(), `with made as (insert into berth.bulk_operations (id, org_id, operation, request, version, created_by, finished_at)
				select 'blk_e2e', org_id, 'deploy', '{}', 'v', 'test', now() from berth.installs where id = $1 returning org_id)
			insert into berth.bulk_items (org_id, bulk_id, install_id, idx, outcome, code, detail) select org_id, 'blk_e2e', $1, 1, 'refused', 'x', 'test' from made`, in.id); err != nil {
			t.Fatal(err)
		}
	}
	if len(column(t, db, `select id from berth.metric_series`)) == 0 {
		if _, err := db.Exec(t.Context(), `insert into berth.metric_series (id, org_id, install_id, action, name, labels_key, kind, last_value, last_at, last_run)
				select 'ser_e2e', org_id, id, 'alive', 'rows', 'x', 'gauge', 1, now(), 'arn_e2e' from berth.installs where id = $1`, in.id); err != nil {
			t.Fatal(err)
		}
	}
	if len(column(t, db, `select id from berth.incidents`)) == 0 {
		if _, err := db.Exec(t.Context(), `with made as (insert into berth.incidents (id, org_id, kind, cause, about, installs, closed_at)
				select 'inc_e2e', org_id, 'unhealthy', 'x', 'x', 2, now() from berth.installs where id = $1 returning org_id)
			insert into berth.alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at, incident_id, closed_at, closed_because)
				select 'alt_e2e', org_id, $1, 'unhealthy', 'x', 'closed', 'x', now(), now(), now(), now(), 'inc_e2e', now(), 'gone' from made`, in.id); err != nil {
			t.Fatal(err)
		}
	}
	for name, table := range map[string]string{
		"alert": "alerts", "incident": "incidents", "bulk": "bulk_operations", "metric": "metric_series", "workflow": "workflows", "change": "changes", "step": "steps", "run": "action_runs", "runner": "runners",
		"build": "builds", "config": "configs", "release": "releases", "stream": "log_streams", "webhook": "webhooks",
	} {
		ids[name] = column(t, db, `select id from berth.`+table)
	}
	placeholder := regexp.MustCompile(`\{(\w+)\}`)
	for document, port := range map[string]int{"ctl-api": in.port, "log-ingest": in.port + 2} {
		raw, err := os.ReadFile(filepath.Join("..", document, "internal", "apigen", "openapi.json"))
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Paths map[string]map[string]json.RawMessage `json:"paths"`
		}
		if err := json.Unmarshal(raw, &spec); err != nil {
			t.Fatal(err)
		}
		for _, route := range slices.Sorted(maps.Keys(spec.Paths)) {
			if _, ok := spec.Paths[route]["get"]; !ok {
				continue
			}
			paths := []string{route}
			for _, name := range placeholder.FindAllStringSubmatch(route, -1) {
				if len(ids[name[1]]) == 0 {
					t.Errorf("%s: the test has no %s", route, name[1])
				}
				var filled []string
				for _, id := range ids[name[1]] {
					for _, path := range paths {
						filled = append(filled, strings.Replace(path, name[0], url.PathEscape(id), 1))
					}
				}
				paths = filled
			}
			answered := 0
			for _, path := range paths {
				status, body := in.read(t, port, path)
				s.look("GET "+path, body)
				if status == http.StatusOK {
					answered++
				}
			}
			if answered == 0 {
				t.Errorf("GET %s answered to nothing", route)
			}
		}
	}
}

// read reads an answer; of one that has no end, what comes within a while.
func (in *install) read(t *testing.T, port int, path string) (status int, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	query := ""
	switch {
	case strings.HasSuffix(path, "/records") && strings.HasPrefix(path, "/streams/"):
		query = "?limit=1000"
	case strings.HasSuffix(path, "/snapshot/diff"):
		now := time.Now().UTC().Format(time.RFC3339)
		query = "?from=" + now + "&to=" + now
	case strings.HasSuffix(path, "/state/diff"):
		query = "?from=1&to=1"
	case strings.HasSuffix(path, "/diff"):
		query = "?to=1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s%s", port, path, query), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+in.token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ = io.ReadAll(resp.Body) // cut short: what came counts
	return resp.StatusCode, body
}

// searchCommands runs the commands by which people look at things.
func (in *install) searchCommands(t *testing.T, db *pgxpool.Pool, workflow string, s *search) {
	t.Helper()
	commands := [][]string{
		{"status"},
		{"status", in.name},
		{"why", in.name},
		{"logs", in.name + "/one"},
		{"logs", in.name + "/two"},
		{"logs", in.name + "/three"},
		{"logs", in.name + "/alive"},
		{"apps", "show", "probe"},
		{"apps", "variables", "list", "probe"},
		{"apps", "variables", "show", "probe", "token"},
		{"apps", "variables", "show", "probe", "motto"},
		{"configs", "list", "probe"},
		{"releases", "list", "probe"},
		{"builds", "list"},
		{"installs", "show", in.name},
		{"installs", "inputs", in.name},
		{"installs", "state", in.name},
		{"installs", "health", in.name},
		{"installs", "resources", in.name},
		{"workflows", "list"},
		{"workflows", "show", workflow},
		{"actions", "list", in.name},
		{"actions", "runs", "--install", in.name},
		{"metrics", in.name},
		{"runners", "list"},
		{"alerts", "list", "--all"},
		{"incidents", "list", "--all"},
		{"changes", "list"},
	}
	for _, change := range column(t, db, `select id from berth.changes`) {
		commands = append(commands, []string{"changes", "show", change, "--text"})
	}
	for _, command := range commands {
		for _, format := range []string{"table", "json"} {
			if format == "json" && command[0] == "logs" {
				continue
			}
			args := append(slices.Clone(command), "-o", format)
			out, errOut, code := in.run(args...)
			if code != 0 {
				t.Errorf("berth %s: exit %d: %s", strings.Join(args, " "), code, errOut)
			}
			s.look("berth "+strings.Join(args, " "), []byte(out+errOut))
		}
	}
}
