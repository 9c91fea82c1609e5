package main

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/setting/settingtest"
)

func TestConfigReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_LISTEN": "nowhere", "BERTH_DB_MAX_CONNS": "1", "BERTH_LOG_KEEP_DAYS": "many"}
	_, err := setting.Load[Config](func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("a bad configuration was accepted")
	}
	for _, name := range []string{"BERTH_LISTEN", "BERTH_DSN_FILE", "BERTH_DB_MAX_CONNS", "BERTH_LOG_KEEP_DAYS"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s:\n%v", name, err)
		}
	}
	if _, err := setting.Load[Config](func(name string) string { return map[string]string{"BERTH_DSN_FILE": "/x"}[name] }); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	settingtest.Documented[Config](t, "../../docs/reference/logs.md")
}
