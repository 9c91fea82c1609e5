package consent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// file is a file of rules with one rule.
func file(rule string, more ...string) string {
	return "version = 1\ninstall = \"ins1\"\nexpires = 2027-06-01T00:00:00Z\ntime_zone = \"Europe/Berlin\"\n" +
		strings.Join(more, "\n") + "\n[[rule]]\nname = \"r\"\n" + rule
}

func rules(t *testing.T, text string) *consent.Rules {
	t.Helper()
	r, err := consent.ParseRules([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

const deploys = "changes = [\"deploy\"]\n"

func berlin(t *testing.T, text string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestDecide(t *testing.T) {
	t.Parallel()
	used := func(n int, ago time.Duration) func(*consent.History) {
		return func(h *consent.History) {
			for range n {
				h.Used = append(h.Used, consent.Use{Rule: "r", At: h.Now.Add(-ago)})
			}
		}
	}
	at := func(text string) func(*consent.History) {
		return func(h *consent.History) { h.Now = berlin(t, text) }
	}
	utc := func(text string) func(*consent.History) {
		return func(h *consent.History) {
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			h.Now = when
		}
	}
	deploy := consent.Facts{ChangeKind: "deploy", Component: "web", Update: 1}
	with := func(change func(*consent.Facts)) consent.Facts { f := deploy; change(&f); return f }
	step := func(from, to string) consent.Facts {
		return with(func(f *consent.Facts) { f.Steps = []consent.Step{{Of: "shop/web", From: from, To: to}} })
	}
	office := deploys + "[[rule.window]]\ndays = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\"]\nfrom = \"09:00\"\nuntil = \"17:00\"\n"
	night := deploys + "[[rule.window]]\nfrom = \"02:00\"\nuntil = \"03:00\"\n"
	for _, tc := range []struct {
		name    string
		rule    string
		more    string
		facts   consent.Facts
		history func(*consent.History)
		why     string // "" when the rule agrees
	}{
		{name: "a rule without conditions", rule: deploys, facts: deploy},
		{name: "another kind of change", rule: deploys, facts: with(func(f *consent.Facts) { f.ChangeKind = "teardown" }), why: "kind teardown"},
		{name: "a component", rule: deploys + `components = ["db", "w*"]`, facts: deploy},
		{name: "another component", rule: deploys + `components = ["db", "api-*"]`, facts: deploy, why: "not for web"},
		{name: "a guardrail asks", rule: deploys, facts: with(func(f *consent.Facts) { f.GuardrailAsks = true }), why: "guardrail asks"},
		{name: "a guardrail asks, which the rule answers", rule: deploys + "guardrail_asks = true", facts: with(func(f *consent.Facts) { f.GuardrailAsks = true })},

		{name: "no deletes", rule: deploys + "no_deletes = true", facts: deploy},
		{name: "no deletes, and one is deleted", rule: deploys + "no_deletes = true", facts: with(func(f *consent.Facts) { f.Delete = 1 }), why: "deletes 1"},
		{name: "no deletes: a replacement deletes", rule: deploys + "no_deletes = true", facts: with(func(f *consent.Facts) { f.Replace = 2 }), why: "replaces 2"},
		{name: "no replaces, and one is deleted", rule: deploys + "no_replaces = true", facts: with(func(f *consent.Facts) { f.Delete = 1 })},
		{name: "no replaces", rule: deploys + "no_replaces = true", facts: with(func(f *consent.Facts) { f.Replace = 1 }), why: "replaces 1"},
		{name: "creates only", rule: deploys + "creates_only = true", facts: consent.Facts{ChangeKind: "deploy", Create: 3}},
		{name: "creates only, and one is updated", rule: deploys + "creates_only = true", facts: deploy, why: "more than create"},
		{name: "creates only, and something runs", rule: deploys + "creates_only = true", facts: consent.Facts{ChangeKind: "deploy", Create: 3, Other: 1}, why: "more than create"},
		{name: "images only", rule: deploys + "images_only = true", facts: with(func(f *consent.Facts) { f.ImagesOnly = true })},
		{name: "more than images", rule: deploys + "images_only = true", facts: deploy, why: "more than images"},
		{name: "a patch release", rule: deploys + "patch_releases = true", facts: step("1.2.3", "1.2.9")},
		{name: "a patch release with v", rule: deploys + "patch_releases = true", facts: step("v1.2.3", "v1.2.4")},
		{name: "a minor release", rule: deploys + "patch_releases = true", facts: step("1.2.3", "1.3.0"), why: "no patch release"},
		{name: "a way back", rule: deploys + "patch_releases = true", facts: step("1.2.3", "1.2.2"), why: "no patch release"},
		{name: "a pre-release", rule: deploys + "patch_releases = true", facts: step("1.2.3", "1.2.4-rc.1"), why: "no patch release"},
		{name: "no version", rule: deploys + "patch_releases = true", facts: step("latest", "latest"), why: "no patch release"},
		{name: "half a version", rule: deploys + "patch_releases = true", facts: step("1.2", "1.3"), why: "no patch release"},
		{name: "nobody knows the versions", rule: deploys + "patch_releases = true", facts: deploy, why: "not known"},

		{name: "the file has expired", rule: deploys, facts: deploy, history: utc("2027-06-01T00:00:00Z"), why: "expired at 2027-06-01 02:00 CEST"},
		{name: "the rule has expired", rule: deploys + "expires = 2026-11-20T10:00:00Z", facts: deploy, why: "expired at 2026-11-20 11:00 CET"},

		{name: "in the window", rule: office, facts: deploy, history: at("2026-11-20 09:00")},
		{name: "at its end", rule: office, facts: deploy, history: at("2026-11-20 17:00"), why: "outside of its windows"},
		{name: "before it", rule: office, facts: deploy, history: at("2026-11-20 08:59"), why: "outside of its windows"},
		{name: "on a Sunday", rule: office, facts: deploy, history: at("2026-11-22 10:00"), why: "outside of its windows"},
		{name: "in winter, by UTC", rule: office, facts: deploy, history: utc("2026-11-20T08:00:00Z")},
		{name: "in summer, by UTC", rule: office, facts: deploy, history: utc("2026-07-17T07:00:00Z")},
		{name: "in summer, as if it were winter", rule: office, facts: deploy, history: utc("2026-07-17T15:30:00Z"), why: "outside of its windows"},
		{name: "the hour that is there twice, first", rule: night, facts: deploy, history: utc("2026-10-25T00:30:00Z")},
		{name: "the hour that is there twice, again", rule: night, facts: deploy, history: utc("2026-10-25T01:30:00Z")},
		{name: "after the hour that is there twice", rule: night, facts: deploy, history: utc("2026-10-25T02:00:00Z"), why: "outside of its windows"},
		{name: "the hour that is left out", rule: night, facts: deploy, history: utc("2027-03-28T01:00:00Z"), why: "outside of its windows"},
		{name: "up to midnight", rule: deploys + "[[rule.window]]\nfrom = \"22:00\"\nuntil = \"24:00\"\n", facts: deploy, history: at("2026-11-20 23:59")},

		{name: "before a freeze", rule: deploys, more: "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2027-01-02\"\nreason = \"year end\"", facts: deploy, history: at("2026-12-19 23:59")},
		{name: "on the first day of a freeze", rule: deploys, more: "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2027-01-02\"\nreason = \"year end\"", facts: deploy, history: at("2026-12-20 00:00"), why: "frozen until 2027-01-03 00:00 CET: year end"},
		{name: "on the last day of a freeze", rule: deploys, more: "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2027-01-02\"", facts: deploy, history: at("2027-01-02 23:59"), why: "frozen until"},
		{name: "after a freeze", rule: deploys, more: "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2027-01-02\"", facts: deploy, history: at("2027-01-03 00:00")},
		{name: "a freeze by the hour", rule: deploys, more: "[[freeze]]\nfrom = \"2026-11-20T11:00\"\nuntil = \"2026-11-20T12:00\"", facts: deploy, why: "frozen until 2026-11-20 12:00 CET"},

		{name: "not too often", rule: deploys + "max_per_day = 3", facts: deploy, history: used(2, time.Hour)},
		{name: "too often in a day", rule: deploys + "max_per_day = 3", facts: deploy, history: used(3, 23*time.Hour), why: "3 changes in 24 hours, at most 3"},
		{name: "a day later", rule: deploys + "max_per_day = 3", facts: deploy, history: used(3, 24*time.Hour)},
		{name: "too often in a week", rule: deploys + "max_per_week = 3", facts: deploy, history: used(3, 6*24*time.Hour), why: "3 changes in 7 days"},
		{name: "another rule was used", rule: deploys + "max_per_day = 1", facts: deploy, history: func(h *consent.History) { h.Used = []consent.Use{{Rule: "other", At: h.Now}} }},
		{name: "a handover an hour ago", rule: deploys + "max_per_day = 3", facts: deploy, history: func(h *consent.History) { h.SpentAt = h.Now.Add(-time.Hour) }, why: "is not known"},
		{name: "a handover a day ago", rule: deploys + "max_per_day = 3", facts: deploy, history: func(h *consent.History) { h.SpentAt = h.Now.Add(-24 * time.Hour) }},
		{name: "a handover a day ago, by the week", rule: deploys + "max_per_week = 3", facts: deploy, history: func(h *consent.History) { h.SpentAt = h.Now.Add(-24 * time.Hour) }, why: "is not known"},
		{name: "a handover, and no limit", rule: deploys, facts: deploy, history: func(h *consent.History) { h.SpentAt = h.Now.Add(-time.Hour) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := consent.History{Now: now}
			if tc.history != nil {
				tc.history(&h)
			}
			got := consent.Decide(rules(t, file(tc.rule, tc.more)), tc.facts, h)
			switch {
			case tc.why == "" && (got.Rule != "r" || !got.Until.After(h.Now)):
				t.Errorf("%+v, want rule r", got)
			case tc.why != "" && (got.Rule != "" || !strings.Contains(got.Why, tc.why)):
				t.Errorf("%+v, want no rule because %q", got, tc.why)
			}
		})
	}
}

func TestTheFirstRuleThatAgrees(t *testing.T) {
	t.Parallel()
	r := rules(t, file(deploys+"creates_only = true", "")+"\n[[rule]]\nname = \"second\"\n"+deploys+"[[rule.window]]\nfrom = \"09:00\"\nuntil = \"17:00\"\n")
	facts := consent.Facts{ChangeKind: "deploy", Component: "web", Update: 1}
	if got := consent.Decide(r, facts, consent.History{Now: now}); got.Rule != "second" || !got.Until.Equal(berlin(t, "2026-11-20 17:00")) {
		t.Errorf("%+v", got)
	}
	if got := consent.Decide(r, facts, consent.History{Now: now.Add(12 * time.Hour)}); !strings.Contains(got.Why, "rule r: it does more than create; rule second: it is outside") {
		t.Errorf("%+v", got)
	}
	if got := consent.Decide(nil, facts, consent.History{Now: now}); got.Rule != "" || got.Why == "" {
		t.Errorf("without rules: %+v", got)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	image := func(before, after string) jobspec.ObjectChange {
		return jobspec.ObjectChange{Address: "Deployment shop/web", Action: "update", Fields: []jobspec.FieldChange{{Path: "spec.template.spec.containers[web].image", Before: before, After: after}}}
	}
	for _, tc := range []struct {
		name    string
		summary jobspec.PlanSummary
		want    consent.Facts
	}{
		{"counts", jobspec.PlanSummary{Create: 1, Update: 2, Replace: 3, Delete: 4}, consent.Facts{Create: 1, Update: 2, Replace: 3, Delete: 4}},
		{"a script", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{{Action: "run"}}}, consent.Facts{Other: 1}},
		{"what nobody knows deletes", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{{Action: "forget"}}}, consent.Facts{Other: 1, Delete: 1}},
		{"what is looked at", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{{Action: "keep"}, {Action: "read"}}}, consent.Facts{}},
		{"an image", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{image(`"r.example/web:1.2.3"`, `"r.example/web:1.2.4@sha256:0"`)}},
			consent.Facts{Update: 1, ImagesOnly: true, Steps: []consent.Step{{Of: "r.example/web", From: "1.2.3", To: "1.2.4"}}}},
		{"another image", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{image(`"r.example/web:1.2.3"`, `"evil.example/web:1.2.4"`)}},
			consent.Facts{Update: 1, ImagesOnly: true, Steps: []consent.Step{{Of: "r.example/web", From: "r.example/web", To: "evil.example/web"}}}},
		{"a registry with a port, no tag", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{image(`"r:5000/web"`, `"r:5000/web@sha256:0"`)}},
			consent.Facts{Update: 1, ImagesOnly: true, Steps: []consent.Step{{Of: "r:5000/web"}}}},
		{"an image and more", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{image(`"a:1"`, `"a:2"`), {Action: "update", Fields: []jobspec.FieldChange{{Path: "spec.replicas"}}}}}, consent.Facts{Update: 2}},
		{"an image, and more updates than are listed", jobspec.PlanSummary{Update: 2, Objects: []jobspec.ObjectChange{image(`"a:1"`, `"a:2"`)}}, consent.Facts{Update: 2}},
		{"an image, and a hook", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{image(`"a:1"`, `"a:2"`), {Action: "run"}}}, consent.Facts{Update: 1, Other: 1}},
		{"a chart", jobspec.PlanSummary{Objects: []jobspec.ObjectChange{
			{Address: "Release shop/web", Action: "upgrade", Fields: []jobspec.FieldChange{{Path: "chart.version", Before: `"1.0.0"`, After: `"1.0.1"`}}}, {Action: "update"},
		}}, consent.Facts{Update: 1, Other: 1, Steps: []consent.Step{{Of: "chart.version", From: "1.0.0", To: "1.0.1"}}}},
		{"the runner", jobspec.PlanSummary{Update: 1, Objects: []jobspec.ObjectChange{{Address: "runner", Action: "update", Fields: []jobspec.FieldChange{{Path: "version", Before: "1.0.0", After: "1.0.1"}, {Path: "archive", After: "x"}}}}},
			consent.Facts{Update: 1, Steps: []consent.Step{{Of: "the runner", From: "1.0.0", To: "1.0.1"}}}},
	} {
		if diff := cmp.Diff(tc.want, consent.Describe("", "", tc.summary)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestParseRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, wrong string }{
		{"good", file(deploys), ""},
		{"a misspelled limit", file(deploys + "max_per_dya = 1"), "nobody knows"},
		{"no TOML", "version = ", "toml"},
		{"no version", strings.Replace(file(deploys), "version = 1", "", 1), "version"},
		{"version 0", strings.Replace(file(deploys), "version = 1", "version = 0", 1), "version"},
		{"no install", strings.Replace(file(deploys), `install = "ins1"`, "", 1), "install"},
		{"no end", strings.Replace(file(deploys), "expires = 2027-06-01T00:00:00Z", "", 1), "expires"},
		{"a zone that is none", strings.Replace(file(deploys), "Europe/Berlin", "Europe/Atlantis", 1), "time_zone"},
		{"the machine's zone", strings.Replace(file(deploys), "Europe/Berlin", "Local", 1), "time_zone"},
		{"no kinds", file(""), "changes"},
		{"a kind that nobody knows", file(`changes = ["deploys"]`), "deploys"},
		{"a pattern that is none", file(deploys + `components = ["["]`), "pattern"},
		{"one name twice", file(deploys) + "\n[[rule]]\nname = \"r\"\n" + deploys, "twice"},
		{"a negative limit", file(deploys + "max_per_day = -1"), "limit"},
		{"a window over midnight", file(deploys + "[[rule.window]]\nfrom = \"22:00\"\nuntil = \"02:00\"\n"), "midnight"},
		{"a day that is none", file(deploys + "[[rule.window]]\ndays = [\"monday\"]\nfrom = \"01:00\"\nuntil = \"02:00\"\n"), "monday"},
		{"a freeze that ends before", file(deploys, "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2026-12-19\""), "freeze 1"},
		{"a freeze without an end", file(deploys, "[[freeze]]\nfrom = \"2026-12-20\""), "until"},
		{"too long", file(deploys) + strings.Repeat("# x\n", 20_000), "more than"},
	} {
		_, err := consent.ParseRules([]byte(tc.text))
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.wrong)
		}
	}
}

func TestOpenRules(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	panel, err := p.config.Read(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(text string, by ...consent.Signer) capsule.Envelope {
		env := consent.NewEnvelope(consent.ForRules, []byte(text))
		for _, s := range by {
			if env, err = s.Sign(consent.ForRules, env); err != nil {
				t.Fatal(err)
			}
		}
		return env
	}
	ada, ada2, cyd := consent.Ed25519Signer(p.ada), sshSigner(t, p.ada2), sshSigner(t, p.cyd)
	if _, err := panel.OpenRules("ins1", signed(file(deploys), ada, cyd)); err != nil {
		t.Error(err)
	}
	forged := signed(file(deploys), ada, cyd)
	forged.Payload = consent.NewEnvelope(consent.ForRules, []byte(file(deploys+"max_per_day = 9"))).Payload
	for name, env := range map[string]capsule.Envelope{
		"one of two":                signed(file(deploys), ada),
		"one of two, with two keys": signed(file(deploys), ada, ada2),
		"of a stranger":             signed(file(deploys), consent.Ed25519Signer(newKey(t))),
		"of nobody":                 signed(file(deploys)),
		"changed afterwards":        forged,
	} {
		if _, err := panel.OpenRules("ins1", env); !errors.Is(err, consent.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := panel.OpenRules("ins2", signed(file(deploys), ada, cyd)); err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("of another install: %v", err)
	}
}

func FuzzRules(f *testing.F) {
	f.Add(file(deploys))
	f.Add(file(deploys+"max_per_day = 2\n[[rule.window]]\nfrom = \"02:00\"\nuntil = \"24:00\"\n", "[[freeze]]\nfrom = \"2026-12-20\"\nuntil = \"2026-12-20T18:00\""))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := consent.ParseRules([]byte(text))
		if err != nil {
			return
		}
		for _, facts := range []consent.Facts{{ChangeKind: "deploy"}, {ChangeKind: "teardown", Delete: 1}} {
			got := consent.Decide(r, facts, consent.History{Now: now})
			if (got.Rule == "") == (got.Why == "") || got.Rule != "" && !got.Until.After(now) {
				t.Errorf("%+v", got)
			}
		}
	})
}
