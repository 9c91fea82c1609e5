package consent_test

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) // a Friday

var subject = consent.Subject{InstallID: "ins1", OriginID: "chg_0", Effect: "sha256:e"}

// people are ada with two keys, bob, and a security key of cyd's.
type people struct {
	ada, ada2, bob ed25519.PrivateKey
	cyd            securityKey
	config         consent.Config
}

func newPeople(t *testing.T) people {
	t.Helper()
	p := people{ada: newKey(t), ada2: newKey(t), bob: newKey(t), cyd: securityKey{newKey(t), 1}}
	p.config = consent.Config{Mode: consent.ModeEach, Need: 2, Holders: []consent.Holder{
		{Name: "ada", Keys: []string{base64Of(p.ada), line(t, p.ada2)}, Accounts: []string{"ada@vendor"}},
		{Name: "bob", Keys: []string{line(t, p.bob)}},
		{Name: "cyd", Keys: []string{line(t, p.cyd)}},
	}}
	return p
}

func says(t *testing.T, s consent.Signer, change ...func(*consent.Statement)) capsule.Envelope {
	t.Helper()
	st := consent.Statement{
		Type: consent.StatementType, InstallID: "ins1", OriginID: "chg_0", ChangeID: "chg_1", Effect: "sha256:e", What: "deploy web",
		Answer: consent.Approve, At: now.Add(-time.Hour), Until: now.Add(time.Hour),
	}
	for _, c := range change {
		c(&st)
	}
	payload, err := st.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	env, err := s.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestSettle(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	stranger := newKey(t)
	ada, ada2, bob, cyd := consent.Ed25519Signer(p.ada), sshSigner(t, p.ada2), sshSigner(t, p.bob), sshSigner(t, p.cyd)
	deny := func(s *consent.Statement) { s.Answer, s.Reason, s.Until = consent.Deny, "not now", time.Time{} }
	both, err := bob.Sign(consent.ForStatement, says(t, ada))
	if err != nil {
		t.Fatal(err)
	}
	with := func(c func(*consent.Statement)) capsule.Envelope { return says(t, bob, c) }
	for _, tc := range []struct {
		name       string
		config     func(*consent.Config)
		answers    []capsule.Envelope
		requesters []string
		facts      consent.Facts
		want       consent.State
		by         []string
		still      int
	}{
		{name: "nobody has answered", want: consent.Needed, still: 2},
		{name: "one of two", answers: []capsule.Envelope{says(t, ada)}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "two of two", answers: []capsule.Envelope{says(t, ada), says(t, bob)}, want: consent.Given, by: []string{"ada", "bob"}},
		{name: "two signatures on one statement", answers: []capsule.Envelope{both}, want: consent.Given, by: []string{"ada", "bob"}},
		{name: "a security key", answers: []capsule.Envelope{says(t, cyd), says(t, bob)}, want: consent.Given, by: []string{"cyd", "bob"}},
		{name: "one holder with two keys counts once", answers: []capsule.Envelope{says(t, ada), says(t, ada2)}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "somebody nobody knows", answers: []capsule.Envelope{says(t, ada), says(t, consent.Ed25519Signer(stranger))}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "another effect", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.Effect = "sha256:f" })}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "another install", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.InstallID = "ins2" })}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "another origin", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.OriginID = "chg_9" })}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "planned again: another change, the same effect", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.ChangeID = "chg_2" })}, want: consent.Given, by: []string{"ada", "bob"}},
		{name: "no more good", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.Until = now })}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "from the future", answers: []capsule.Envelope{says(t, ada), with(func(s *consent.Statement) { s.At, s.Until = now.Add(time.Hour), now.Add(2*time.Hour) })}, want: consent.Needed, by: []string{"ada"}, still: 1},
		{name: "one denies, after two agreed", answers: []capsule.Envelope{says(t, ada), says(t, bob), says(t, cyd, deny)}, want: consent.Denied, by: []string{"cyd"}},
		{name: "one denies, before two agreed", answers: []capsule.Envelope{says(t, cyd, deny), says(t, ada), says(t, bob)}, want: consent.Denied, by: []string{"cyd"}},
		{name: "who agreed takes it back", answers: []capsule.Envelope{says(t, ada), says(t, bob), says(t, ada, deny)}, want: consent.Denied, by: []string{"ada"}},
		{name: "a stranger denies nothing", answers: []capsule.Envelope{says(t, ada), says(t, bob), says(t, consent.Ed25519Signer(stranger), deny)}, want: consent.Given, by: []string{"ada", "bob"}},
		{name: "a holder revoked later", config: func(c *consent.Config) { c.Holders, c.Need = c.Holders[:2], 1; c.Holders = c.Holders[1:] }, answers: []capsule.Envelope{says(t, ada)}, want: consent.Needed, still: 1},
		{name: "a key revoked later", config: func(c *consent.Config) { c.Holders[0].Keys = c.Holders[0].Keys[:1] }, answers: []capsule.Envelope{says(t, ada2), says(t, bob)}, want: consent.Needed, by: []string{"bob"}, still: 1},
		{name: "who asked for it does not approve it", requesters: []string{"ada@vendor"}, answers: []capsule.Envelope{says(t, ada), says(t, bob)}, want: consent.Needed, by: []string{"bob"}, still: 1},
		{name: "who asked for it may deny it", requesters: []string{"ada@vendor"}, answers: []capsule.Envelope{says(t, ada, deny)}, want: consent.Denied, by: []string{"ada"}},
		{name: "mode vendor: nobody is asked", config: func(c *consent.Config) { c.Mode = consent.ModeVendor }, want: consent.NotAsked},
		{name: "mode vendor: a guardrail asks", config: func(c *consent.Config) { c.Mode = consent.ModeVendor }, facts: consent.Facts{GuardrailAsks: true}, want: consent.Needed, still: 2},
		{name: "mode vendor: one denies", config: func(c *consent.Config) { c.Mode = consent.ModeVendor }, answers: []capsule.Envelope{says(t, bob, deny)}, want: consent.Denied, by: []string{"bob"}},
		{name: "mode rules: without rules", config: func(c *consent.Config) { c.Mode = consent.ModeRules }, want: consent.Needed, still: 2},
		{name: "mode rules: people agree", config: func(c *consent.Config) { c.Mode = consent.ModeRules }, answers: []capsule.Envelope{both}, want: consent.Given, by: []string{"ada", "bob"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			config := p.config
			config.Holders = append([]consent.Holder(nil), config.Holders...)
			if tc.config != nil {
				tc.config(&config)
			}
			panel, err := config.Read(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := panel.Settle(consent.Case{Subject: subject, Answers: tc.answers, Requesters: tc.requesters, Facts: tc.facts, History: consent.History{Now: now}})
			if got.State != tc.want || got.Still != tc.still || !cmp.Equal(got.By, tc.by) {
				t.Errorf("%s by %v, %d missing (%s); want %s by %v, %d missing", got.State, got.By, got.Still, got.Why, tc.want, tc.by, tc.still)
			}
			if got.State == consent.Given && len(got.Signed) == 0 || got.State == consent.Needed && got.Why == "" {
				t.Errorf("%+v does not say why", got)
			}
		})
	}
}

func TestMachineKeyStandsIn(t *testing.T) {
	t.Parallel()
	machine := newKey(t)
	panel, err := consent.Config{}.Read(machine.Public().(ed25519.PublicKey), nil)
	if err != nil || !panel.ByMachine() || panel.Mode != consent.ModeVendor {
		t.Fatalf("%+v, %v", panel, err)
	}
	c := consent.Case{Subject: subject, Facts: consent.Facts{GuardrailAsks: true}, History: consent.History{Now: now}, Answers: []capsule.Envelope{
		says(t, consent.Ed25519Signer(machine), func(s *consent.Statement) { s.By = "root" }),
	}}
	if got := panel.Settle(c); got.State != consent.Given || !cmp.Equal(got.By, []string{"root (machine key)"}) {
		t.Errorf("%+v", got)
	}
	// Once there are holders, the machine is none of them.
	panel, err = consent.Config{Holders: []consent.Holder{{Name: "ada", Keys: []string{base64Of(newKey(t))}}}}.Read(machine.Public().(ed25519.PublicKey), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := panel.Settle(c); got.State != consent.Needed {
		t.Errorf("with holders: %+v", got)
	}
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	dispatch := newKey(t).Public().(ed25519.PublicKey)
	for _, tc := range []struct {
		name, wrong string
		config      consent.Config
	}{
		{"nothing", "", consent.Config{}},
		{"people", "", p.config},
		{"a mode that nobody knows", "not vendor, rules or each", consent.Config{Mode: "all"}},
		{"each without holders", "needs holders", consent.Config{Mode: consent.ModeEach}},
		{"rules without holders", "needs holders", consent.Config{Mode: consent.ModeRules}},
		{"more than there are", "need is 4", consent.Config{Mode: consent.ModeEach, Holders: p.config.Holders, Need: 4}},
		{"two of nobody", "no holders", consent.Config{Need: 2}},
		{"a nameless holder", "needs a name", consent.Config{Holders: []consent.Holder{{Keys: []string{base64Of(p.ada)}}}}},
		{"a holder called like the machine", "other than", consent.Config{Holders: []consent.Holder{{Name: consent.Machine, Keys: []string{base64Of(p.ada)}}}}},
		{"no keys", "has no keys", consent.Config{Holders: []consent.Holder{{Name: "ada"}}}},
		{"a key that is none", "key 1 of holder", consent.Config{Holders: []consent.Holder{{Name: "ada", Keys: []string{"x"}}}}},
		{"one name twice", "two holders", consent.Config{Holders: []consent.Holder{{Name: "ada", Keys: []string{base64Of(p.ada)}}, {Name: "ada", Keys: []string{base64Of(p.bob)}}}}},
		{"one key in two forms, of two holders", "also of holder", consent.Config{Holders: []consent.Holder{{Name: "ada", Keys: []string{base64Of(p.ada)}}, {Name: "bob", Keys: []string{line(t, p.ada)}}}}},
		{"the vendor's key", "key of the vendor's", consent.Config{Holders: []consent.Holder{{Name: "ada", Keys: []string{capsule.EncodePublicKey(dispatch)}}}}},
	} {
		_, err := tc.config.Read(nil, []ed25519.PublicKey{dispatch})
		if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.wrong)
		}
	}
}

func TestParseStatement(t *testing.T) {
	t.Parallel()
	good, err := consent.Statement{
		Type: consent.StatementType, InstallID: "i", OriginID: "o", ChangeID: "c", Effect: "e", What: "w", Answer: consent.Approve, At: now, Until: now.Add(time.Hour),
	}.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consent.ParseStatement(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a space":          {`,`, `, `},
		"an unknown field": {`"type"`, `"also":1,"type"`},
		"another type":     {"consent.v1", "consent.v2"},
		"another answer":   {"approve", "perhaps"},
		"no origin":        {`"origin_id":"o"`, `"origin_id":""`},
		"for ever":         {"2026-11-20T11:00:00Z", "2028-11-20T11:00:00Z"},
		"until before":     {"2026-11-20T11:00:00Z", "2026-11-20T09:00:00Z"},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s changes nothing in %s", name, good)
		}
		if _, err := consent.ParseStatement([]byte(bad)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
