package review_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/review"
)

func good() review.Facts {
	return review.Facts{
		RunnerID: "rnr_1", InstallID: "ins_1", Trust: "isolated", Isolation: "a user for each engine", Active: true, Guardrails: 16,
		Consent: "each", Need: 2, Holders: []string{"ada", "bob"}, Machine: "ed25519:m", Recovery: "ed25519:r", ChainRecords: 3, Modules: 5, FIPS: true,
	}
}

// Each answer follows the state: whatever would contradict it changes it.
func TestFactsChangeAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		number int
		before review.Verdict
		change func(*review.Facts)
		after  review.Verdict
		says   string
	}{
		"development":            {1, review.Yes, func(f *review.Facts) { f.Trust = "development" }, review.No, "development"},
		"key of a thief":         {1, review.Yes, func(f *review.Facts) { f.KeyProblem = "somebody" }, review.No, ""},
		"the vendor's word":      {1, review.Yes, func(f *review.Facts) { f.Consent = "vendor" }, review.Partly, "guardrails"},
		"guardrails only warn":   {1, review.Yes, func(f *review.Facts) { f.Consent, f.OnlyWarn = "vendor", true }, review.Partly, "only warn"},
		"widening":               {3, review.Yes, func(f *review.Facts) { f.Trust = "development" }, review.No, ""},
		"a listener":             {4, review.Yes, func(f *review.Facts) { f.Listeners = []string{"0.0.0.0:80"} }, review.No, "0.0.0.0:80"},
		"a listener on all v6":   {4, review.Yes, func(f *review.Facts) { f.Listeners = []string{"[::]:80"} }, review.No, "[::]:80"},
		"loopback":               {4, review.Yes, func(f *review.Facts) { f.Listeners = []string{"127.0.0.1:80"} }, review.Yes, "127.0.0.1:80"},
		"listeners not seen":     {4, review.Yes, func(f *review.Facts) { f.Unseen = "no rights" }, review.Partly, "no rights"},
		"rewritten ledger":       {6, review.Partly, func(f *review.Facts) { f.EgressProblem = "was cut" }, review.No, "was cut"},
		"switched off":           {7, review.Partly, func(f *review.Facts) { f.EgressOff = []string{"log-bodies"} }, review.Partly, "log-bodies"},
		"old seals":              {7, review.Partly, func(f *review.Facts) { f.FirstForm = true }, review.Partly, "reseal"},
		"another process":        {9, review.Yes, func(f *review.Facts) { f.KeyProblem = "somebody" }, review.No, ""},
		"not enrolled":           {9, review.Yes, func(f *review.Facts) { f.RunnerID = "" }, review.NotYet, ""},
		"bad chain, same":        {10, review.Yes, func(f *review.Facts) { f.ChainProblem = "cut" }, review.Partly, "cut"},
		"one is enough":          {11, review.Yes, func(f *review.Facts) { f.Need = 1 }, review.Partly, "1 of 2"},
		"no holders":             {12, review.Partly, func(f *review.Facts) { f.ByMachine = true }, review.Partly, "without holders"},
		"windows":                {13, review.No, func(f *review.Facts) { f.Consent, f.Rules, f.Windows = "rules", 2, 1 }, review.Yes, "1 windows"},
		"windows not asked":      {13, review.No, func(f *review.Facts) { f.Rules = 2 }, review.No, "does not ask"},
		"roles":                  {14, review.Yes, func(f *review.Facts) { f.Roles, f.RolesOn = []string{"fix"}, []string{"fix"} }, review.Yes, "on right now: fix"},
		"bad chain":              {15, review.Yes, func(f *review.Facts) { f.ChainProblem = "cut" }, review.No, "cut"},
		"accepted gap":           {15, review.Yes, func(f *review.Facts) { f.ChainDecisions = 1 }, review.Partly, "missing"},
		"stopped":                {16, review.Yes, func(f *review.Facts) { f.Switch = "sever" }, review.Yes, "sever"},
		"release key":            {21, review.Yes, func(f *review.Facts) { f.Release = []string{"ed25519:x"} }, review.Yes, "ed25519:x"},
		"no sandbox":             {22, review.Yes, func(f *review.Facts) { f.Trust = "development" }, review.No, ""},
		"no walls":               {23, review.Yes, func(f *review.Facts) { f.Trust = "" }, review.No, "not known"},
		"no FIPS":                {24, review.Partly, func(f *review.Facts) { f.FIPS = false }, review.No, "not in FIPS"},
		"no list of modules":     {26, review.Partly, func(f *review.Facts) { f.Modules = 0 }, review.No, ""},
		"vendor key, artifacts":  {19, review.Partly, func(f *review.Facts) { f.Vendor = []string{"ed25519:v"} }, review.Yes, "ed25519:v"},
		"rules for images":       {19, review.Partly, func(f *review.Facts) { f.Images = 2 }, review.Partly, "2 rules"},
		"vendor key, downgrade":  {20, review.Partly, func(f *review.Facts) { f.Vendor = []string{"ed25519:v"} }, review.Yes, "that you or the vendor revoked (none so far)"},
		"another machine before": {9, review.Yes, func(f *review.Facts) { f.Former = []string{"ed25519:old (records 1 to 9)"} }, review.Yes, "ed25519:old (records 1 to 9)"},
		"vendor's revocation":    {20, review.Partly, func(f *review.Facts) { f.Vendor, f.VendorRevoked = []string{"ed25519:v"}, []int{3, 12} }, review.Yes, "you: none; the vendor: 3, 12"},
		"no recovery key":        {28, review.Yes, func(f *review.Facts) { f.Recovery = "" }, review.Partly, "no recovery key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := good()
			if got := review.Answers(f)[tc.number-1]; got.Verdict != tc.before {
				t.Errorf("before: %s (%s), want %s", got.Verdict, got.Text, tc.before)
			}
			tc.change(&f)
			if got := review.Answers(f)[tc.number-1]; got.Verdict != tc.after || !strings.Contains(got.Text, tc.says) {
				t.Errorf("after: %s (%s), want %s with %q", got.Verdict, got.Text, tc.after, tc.says)
			}
		})
	}
}

// Thirty answers, each with a command and controls, and tests that exist.
func TestAnswersNameWhatHoldsThem(t *testing.T) {
	t.Parallel()
	there := tests(t)
	list := review.Answers(good())
	if len(list) != 30 {
		t.Errorf("%d answers, want 30", len(list))
	}
	for _, a := range list {
		if a.Question == "" || a.Text == "" || len(a.Commands) == 0 || len(a.Controls) < 3 ||
			!slices.Contains([]review.Verdict{review.Yes, review.No, review.Partly, review.NotYet}, a.Verdict) {
			t.Errorf("answer %d lacks something: %+v", a.Number, a)
		}
		if len(a.Tests) == 0 && a.Verdict != review.NotYet {
			t.Errorf("answer %d says %s, and no test holds it", a.Number, a.Verdict)
		}
		for _, name := range a.Tests {
			if !there[name] {
				t.Errorf("answer %d names %s, which is no test of this repository", a.Number, name)
			}
		}
	}
	if text := review.Markdown(good(), list); strings.Count(text, "\n## ") != 30 {
		t.Errorf("Markdown has %d questions", strings.Count(text, "\n## "))
	}
}

var testInCode = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)

func tests(t *testing.T) map[string]bool {
	t.Helper()
	there, root := map[string]bool{}, filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(path)
		for _, match := range testInCode.FindAllSubmatch(code, -1) {
			there[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
