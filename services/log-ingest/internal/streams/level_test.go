package streams_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

func TestLevelOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want streams.Level
	}{
		{"Error: creating S3 bucket: AccessDenied", streams.Error},
		{"\x1b[31m╷\x1b[0m\x1b[31m│\x1b[0m \x1b[1mError: \x1b[0mInvalid value", streams.Error},
		{"│ Warning: Argument is deprecated", streams.Warning},
		{"ERROR: it broke", streams.Error},
		{"[error] it broke", streams.Error},
		{"2026-11-20T10:00:00.123Z ERROR it broke", streams.Error},
		{"2026/11/20 10:00:00 panic: runtime error", streams.Error},
		{"10:00:00.123 WARN slow", streams.Warning},
		{"[2026-11-20 10:00:00] fatal: no space", streams.Error},
		{`{"time":"2026-11-20T10:00:00Z","level":"ERROR","msg":"x"}`, streams.Error},
		{`{"severity": "warning", "msg": "x"}`, streams.Warning},
		{`time=2026-11-20T10:00:00Z level=error msg="x"`, streams.Error},
		{"E1120 10:00:00.000000       1 leader.go:1] lost", streams.Error},
		{"W1120 10:00:00.000000       1 leader.go:1] slow", streams.Warning},
		{"error!", streams.Error},
		{"err", streams.Error},
		{"0 errors, 0 warnings", streams.NoLevel},
		{"errors.go:12 compiled", streams.NoLevel},
		{"aws_cloudwatch_metric_alarm.error: Creating...", streams.NoLevel},
		{"Apply complete! Resources: 1 added, 0 changed, 0 destroyed.", streams.NoLevel},
		{"level=info msg=\"no error: all is well\"", streams.NoLevel},
		{"warned", streams.NoLevel},
		{"", streams.NoLevel},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			if got := streams.LevelOf(logship.Record{Text: tt.text}); got != tt.want {
				t.Errorf("LevelOf(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
	if got := streams.LevelOf(logship.Record{Lost: true, Text: "12 lines dropped: spool full"}); got != streams.Warning {
		t.Errorf("LevelOf lost lines = %q, want %q", got, streams.Warning)
	}
}
