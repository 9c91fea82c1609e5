package check_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestLintRules(t *testing.T) {
	t.Parallel()
	fsys := appconfigtest.Folder(map[string]string{
		"components/a.toml": appconfigtest.Module("a", "max_auot_retries = 1", "dependencies = [\"gone\"]", "[vars]\nnobody = \"1\""),
		"odd.toml":          "x = 1\n",
		"lint.toml": `[rules.unknown_key]
enabled = false
[rules.undeclared]
severity = "error"
[rules.unknown_file]
severity = "note"
[rules.reference]
enabled = false
`})
	lint, about := check.ReadLint(fsys)
	if len(about) > 0 {
		t.Errorf("lint.toml itself:\n%s", appconfigtest.Render(about))
	}
	_, found := check.Format(fsys, appconfig.LoadOptions{})
	want := `components/a.toml:5:17 error component "gone" does not exist
components/a.toml:7:1 error the module in src/base has no variable "nobody", so the value does nothing: declare it there, or remove it here
lint.toml:7:2 warning rule "reference" silences warnings and notes, and 1 of what it is about are errors, which stay: correct them: a folder with errors cannot be used
odd.toml note is not part of the app folder format and has no effect`
	if diff := cmp.Diff(want, strings.TrimSpace(appconfigtest.Render(lint.Apply(found)))); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	if !strings.Contains(appconfigtest.Render(found), "max_auot_retries") {
		t.Error("loading looks at lint.toml, too")
	}
}

// TestLintOfOthers holds that no shape of the file is an error, since other tools
// read it, too.
func TestLintOfOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, file, want string }{
		{"none", "", ""},
		{"empty", "# nothing\n", ""},
		{"other keys", "extends = \"x\"\n[settings]\na = 1\n", ""},
		{"no TOML", "rules = \n", "lint.toml:1:9 warning is not valid TOML"},
		{"rules of another tool", "[rules.require-policy-tests-and-more]\nenabled = true\n", `lint.toml:1:2 note there is no rule "require-policy-tests-and-more", so it has no effect here`},
		{"a misspelt rule", "[rules.undeclraed]\nenabled = false\n", `lint.toml:1:2 warning there is no rule "undeclraed": did you mean "undeclared"?`},
		{"rules in a list", "rules = [1]\n", "lint.toml:1:1 note rules is no table, so it has no effect here"},
		{"a rule that is a text", "[rules]\nundeclared = \"off\"\n", `lint.toml:2:1 note rule "undeclared" is no table, so it has no effect here`},
		{"other values", "[rules.undeclared]\nenabled = \"no\"\nseverity = \"warn\"\n", "lint.toml:2:1 note enabled is neither true nor false, so it has no effect here\n" +
			`lint.toml:3:1 note severity is none of "error", "warning" and "note", so it has no effect here`},
		{"other keys of a rule", "[rules.undeclared]\nseverty = \"note\"\n", `lint.toml:2:1 note a rule has no "severty", so it has no effect here: did you mean "severity"?`},
		{"a check without a command", "[[custom]]\nname = \"x\"\n", "lint.toml:1:3 note a check has a name and a command, both texts, so it has no effect here"},
		{"a check outside", "[[custom]]\nname = \"x\"\ncommand = \"../evil\"\n", `lint.toml:3:1 note command "../evil" leaves the app folder, so it has no effect here`},
		{"a check with a root", "[[custom]]\nname = \"x\"\ncommand = \"/bin/sh\"\n", `lint.toml:3:1 note command "/bin/sh" leaves the app folder, so it has no effect here`},
		{"a check with arguments", "[[custom]]\nname = \"x\"\ncommand = \"checks/ok --all\"\n", `lint.toml:3:1 note command "checks/ok --all" is no file of the app folder, so it has no effect here`},
		{"a check that cannot run", "[[custom]]\nname = \"x\"\ncommand = \"README.md\"\n", `lint.toml:3:1 note command "README.md" is not executable, so it has no effect here`},
		{"a check called like a rule", "[[custom]]\nname = \"syntax\"\ncommand = \"checks/ok\"\n", `lint.toml:1:3 note "syntax" cannot be the name of a check, so it has no effect here`},
		{"two checks of one name", "[[custom]]\nname = \"x\"\ncommand = \"checks/ok\"\n[[custom]]\nname = \"x\"\ncommand = \"checks/ok\"\n", `lint.toml:4:3 note there are two checks called "x", so it has no effect here`},
		{"a check and its rule", "[[custom]]\nname = \"x\"\ncommand = \"./checks/ok\"\n[rules.x]\nseverity = \"note\"\n", ""},
	} {
		fsys := appconfigtest.Folder(map[string]string{"lint.toml": tc.file, "README.md": "x"})
		fsys["checks/ok"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o755}
		lint, found := check.ReadLint(fsys)
		if got := strings.TrimSpace(appconfigtest.Render(found)); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		if place.HasErrors(found) {
			t.Errorf("%s: it is an error", tc.name)
		}
		custom := place.Diagnostic{Severity: place.Error, Code: check.CustomCode("x"), Message: "m"}
		if got := lint.Apply([]place.Diagnostic{custom}); tc.name == "a check and its rule" && got[0].Severity != place.Note {
			t.Errorf("the rule of a check does nothing: %v", got)
		}
	}
}

// TestLintKnowsEveryCode holds that each code can be silenced.
func TestLintKnowsEveryCode(t *testing.T) {
	t.Parallel()
	for _, code := range declaredCodes(t) {
		if _, about := check.ReadLint(appconfigtest.Folder(map[string]string{"lint.toml": "[rules." + code + "]\nenabled = false\n"})); len(about) > 0 {
			t.Errorf("%s: %s", code, appconfigtest.Render(about))
		}
	}
}
