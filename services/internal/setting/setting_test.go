package setting_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/setting"
)

type config struct {
	Listen string        `env:"X_LISTEN" default:"127.0.0.1:1"`
	Conns  int           `env:"X_CONNS" default:"8"`
	Lease  time.Duration `env:"X_LEASE" default:"60s"`
	Open   bool          `env:"X_OPEN" default:"false"`
	Folder string        `env:"X_FOLDER" shown:"that of the executable"`
	Inner  chan int      `env:"-"`
	Free   chan int
}

func (c config) Validate() error {
	if c.Conns < 1 {
		return errors.New("X_CONNS is below 1")
	}
	return nil
}

func TestLoad(t *testing.T) {
	t.Parallel()
	plain := config{Listen: "127.0.0.1:1", Conns: 8, Lease: time.Minute}
	changed := config{Listen: ":2", Conns: 3, Lease: time.Second, Open: true, Folder: "/x"}
	tests := []struct {
		name   string
		env    map[string]string
		want   config
		faults string
	}{
		{name: "defaults", want: plain},
		{name: "all set", env: map[string]string{"X_LISTEN": " :2\n", "X_CONNS": "3", "X_LEASE": "1s", "X_OPEN": "true", "X_FOLDER": "/x"}, want: changed},
		{
			name: "unreadable values and what is wrong besides, at once",
			env:  map[string]string{"X_CONNS": "0", "X_LEASE": "soon", "X_OPEN": "perhaps"}, want: config{Listen: plain.Listen, Lease: time.Minute},
			faults: "X_LEASE is not a duration such as 60s\nX_OPEN is neither true nor false\nX_CONNS is below 1",
		},
		{name: "an unreadable number has its default", env: map[string]string{"X_CONNS": "many"}, want: plain, faults: "X_CONNS is not a whole number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := setting.Load[config](func(name string) string { return tt.env[name] })
			faults := ""
			if err != nil {
				faults = err.Error()
			}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}
