package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// What starts with the first migration waits for a server, a role and a schema
// that are not there yet.
func TestAwaitSchema(t *testing.T) {
	t.Parallel()
	const long = time.Minute
	db := pgtest.New(t)
	file := filepath.Join(t.TempDir(), "log.dsn")
	put := func(dsn string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("postgres://berth_log@/nowhere?host=/nowhere")

	if err := awaitSchema(t.Context(), "", long); err == nil || !strings.Contains(err.Error(), "BERTH_DSN_FILE is not set") {
		t.Errorf("without a file: %v", err)
	}
	err := awaitSchema(t.Context(), file, 10*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "not there after 10ms")) {
		t.Errorf("without a server: %v, want that it waited in vain", err)
	}

	done := make(chan error, 1)
	go func() { done <- awaitSchema(t.Context(), file, long) }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	put(db.DSN(store.RoleLog))
	if err := <-done; err != nil {
		t.Errorf("when the schema is there: %v", err)
	}

	if _, err := db.Admin().Exec(t.Context(), "delete from berth.schema_versions where version_id = (select max(version_id) from berth.schema_versions)"); err != nil {
		t.Fatal(err)
	}
	if err := awaitSchema(t.Context(), file, awaitPause); err == nil || !strings.Contains(err.Error(), "the database schema is at version") {
		t.Errorf("with an older schema: %v, want that it waited", err)
	}
}

// Where secrets are files, so is the administrator's address.
func TestReadAdminURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("postgres://file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, flag, env, file, want string }{
		{name: "nothing"},
		{name: "the file", file: file, want: "postgres://file"},
		{name: "the environment goes before the file", env: "postgres://env", file: file, want: "postgres://env"},
		{name: "the flag goes before both", flag: "postgres://flag", env: "postgres://env", file: file, want: "postgres://flag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(adminURLEnv, tt.env)
			t.Setenv(adminURLFileEnv, tt.file)
			got, err := migration{adminURL: tt.flag}.readAdminURL()
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Setenv(adminURLFileEnv, filepath.Join(t.TempDir(), "none"))
	if _, err := (migration{}).readAdminURL(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
