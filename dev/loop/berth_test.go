package main

import "testing"

func TestDatabaseAddressHasNoPassword(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, dsn, want string }{
		{"the one of berth up", "postgres://berth_ctl:secret@/berth?host=%2Fdata%2Frun%2Fpostgres&port=5432\n", "postgres://postgres@/berth?host=%2Fdata%2Frun%2Fpostgres&port=5432"},
		{"the one of DATABASE_URL", "postgres://berth_ctl:secret@db.example.com:5432/berth", "postgres://berth_ctl@db.example.com:5432/berth"},
		{"a password in the query", "postgres://berth_ctl@db.example.com/berth?password=secret", "postgres://berth_ctl@db.example.com/berth"},
		{"no address", "host=/run user=x password=secret", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := database(tt.dsn); got != tt.want || ok != (tt.want != "") {
				t.Errorf("database() = %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
