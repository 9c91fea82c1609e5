package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// gone is how long a killed supervisor may take to be gone.
const gone = 10 * time.Second

// berth is the command line, of this source tree.
type berth struct {
	root string
	data string // BERTH_DATA
}

// status is what is used of `berth up --status`.
type status struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"` // of the supervisor, 0 without one
	Parts []struct {
		Name string `json:"name"`
		Log  string `json:"log"`
	} `json:"parts"`
}

// run returns what berth prints; its error has what it says on stderr.
func (b berth) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, ".bin", "berth"), args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = b.root, &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("berth %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// up starts Berth in the background, unless it runs; it takes over what an
// earlier supervisor left.
func (b berth) up(ctx context.Context) error {
	_, err := b.run(ctx, "up", "--detach")
	return err
}

// restart restarts the parts whose executables were replaced, and names them.
func (b berth) restart(ctx context.Context) ([]string, error) {
	out, err := b.run(ctx, "up", "--restart", "-o", "json")
	if err != nil {
		return nil, err
	}
	var done struct {
		Parts []string `json:"parts"`
	}
	if err := json.Unmarshal(out, &done); err != nil {
		return nil, fmt.Errorf("berth up --restart: %w", err)
	}
	return done.Parts, nil
}

// takeOver replaces the supervisor. Its parts run on when it is killed, and the
// next one ends only those that it would start differently.
func (b berth) takeOver(ctx context.Context) error {
	deadline := time.Now().Add(gone)
	for killed := 0; ; {
		now, err := b.status(ctx)
		switch {
		case err != nil:
			return err
		case now.PID == 0:
			return b.up(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("the supervisor (pid %d) does not end", now.PID)
		case now.PID != killed:
			if err := syscall.Kill(now.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("replace the supervisor: %w", err)
			}
			killed = now.PID
		}
	}
}

// status asks how Berth is. It is no error that a part is not ready.
func (b berth) status(ctx context.Context) (status, error) {
	var s status
	out, err := b.run(ctx, "up", "--status", "-o", "json")
	if len(out) > 0 {
		err = json.Unmarshal(out, &s)
	}
	return s, err
}

// names are those of parts, by the name of their logs; it has what is known.
func (b berth) names() map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	names := map[string]string{}
	now, err := b.status(ctx)
	if err != nil {
		return names
	}
	for _, part := range now.Parts {
		names[filepath.Base(part.Log)] = part.Name
	}
	return names
}

// places says where everything is.
func (b berth) places(ctx context.Context) ([]string, error) {
	now, err := b.status(ctx)
	if err != nil {
		return nil, err
	}
	lines := []string{
		"API            " + now.URL,
		"API reference  " + now.URL + "/reference",
		"command line   export BERTH_DATA=" + b.data + " BERTH_CONTEXT=local PATH=" + filepath.Join(b.root, ".bin") + ":$PATH",
		"logs           " + filepath.Join(b.data, "log"),
	}
	if strings.TrimSpace(os.Getenv("OTEL_METRICS_EXPORTER")) == "prometheus" {
		lines = append(lines, "metrics        http://127.0.0.1:"+cmp.Or(os.Getenv("OTEL_EXPORTER_PROMETHEUS_PORT"), "9464")+"/metrics of ctl-api; the next three ports are those of runner-api, log-ingest, builder")
	}
	// What it says is where the database is; its password stays in the file.
	if dsn, err := os.ReadFile(filepath.Join(b.data, "dsn", "ctl.dsn")); err == nil {
		if address, ok := database(string(dsn)); ok {
			lines = append(lines, "database       psql '"+address+"'")
		}
	}
	return lines, nil
}

// database is the address that a person connects to, without a password. Of a
// Postgres that `berth up` started, whose socket is a folder, it is the
// administrator's.
func database(dsn string) (address string, ok bool) {
	u, err := url.Parse(strings.TrimSpace(dsn))
	if err != nil || u.User == nil {
		return "", false
	}
	query := u.Query()
	query.Del("password")
	user := u.User.Username()
	if strings.HasPrefix(query.Get("host"), "/") {
		user = "postgres"
	}
	u.User, u.RawQuery = url.User(user), query.Encode()
	return u.String(), true
}

// down stops everything, however ctx ended.
func (b berth) down(show *screen) error {
	out, err := b.run(context.Background(), "down")
	for line := range strings.Lines(string(out)) {
		show.line(own, strings.TrimSpace(line))
	}
	return err
}
