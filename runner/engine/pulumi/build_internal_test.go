package pulumi

import "testing"

func TestCompilerSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"go: downloading example.test/a v1.0.0\n# example.test/app\n./main.go:3:8: undefined: x\n": "./main.go:3:8: undefined: x",
		"main.go:3:8: missing go.sum entry for module providing package a\n":                       "main.go:3:8: missing go.sum entry for module providing package a",
		"\n": "it does not say why",
	} {
		if got := compilerSays(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
