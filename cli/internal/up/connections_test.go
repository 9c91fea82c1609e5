package up

import "testing"

func TestConnectionLimitFitsThePools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  map[string]string
		want int
	}{
		{name: "default pools", want: 45},
		{name: "smaller ones", env: map[string]string{"BERTH_DB_MAX_CONNS": "10"}, want: 45},
		{name: "a larger one", env: map[string]string{"BERTH_DATABASE_CONNECTIONS": "60"}, want: 75},
		{name: "no number", env: map[string]string{"BERTH_DB_MAX_CONNS": "many"}, want: 45},
	} {
		if got := connectionLimit(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	const reserved, migrating = 3, 10
	if four := 4*connectionLimit(func(string) string { return "" }) + reserved + migrating; four > maxConnections {
		t.Errorf("four services may take %d connections, our Postgres gives %d", four, maxConnections)
	}
}
