package csvcell_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/csvcell"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"acme":                  "acme",
		"a=1+1":                 "a=1+1",
		"-3.5":                  "-3.5",
		"+4":                    "+4",
		"=1+1":                  "'=1+1",
		"+cmd|' /C calc'!A0":    "'+cmd|' /C calc'!A0",
		"-2+3+cmd|' /C calc'!A": "'-2+3+cmd|' /C calc'!A",
		"@SUM(A1)":              "'@SUM(A1)",
		"|x":                    "'|x",
		"%0A=1":                 "'%0A=1",
		" =1+1":                 "' =1+1",
		"\t=1+1":                "'\t=1+1",
		"\r\n=1":                "'\r\n=1",
	} {
		if got := csvcell.Safe(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
