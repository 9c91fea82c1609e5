package tend_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// runnerChain writes an install's chain, and copies it as runner-api does.
type runnerChain struct {
	r      *rig
	signer chain.Signer
	head   chain.Head
}

func (r *rig) newRunnerChain() *runnerChain {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	return &runnerChain{r: r, signer: chain.Signer{Chain: r.install, Key: key}}
}

func (c *runnerChain) add(what string) {
	t := c.r.t
	t.Helper()
	line, err := chain.Next(c.head, chain.Record{Actor: "runner", Kind: chain.Event, What: what}, c.signer)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(line.Raw)
	err = c.r.pg.AsRole(store.RoleRunner).Tx(t.Context(), c.r.org, func(ctx context.Context, tx *store.Tx) error {
		q := runnerdb.New(tx.DB())
		add := runnerdb.RunnerAddChainRecordsParams{Chain: c.r.install, Seqs: []int64{line.Seq}, Prevs: [][]byte{{}}, Hashes: [][]byte{hash[:]}, Bodies: [][]byte{line.Raw}}
		if err := q.RunnerAddChainRecords(ctx, add); err != nil {
			return err
		}
		return q.RunnerMoveChainHead(ctx, runnerdb.RunnerMoveChainHeadParams{Chain: c.r.install, Seq: line.Seq, Hash: hash[:]})
	})
	if err != nil {
		t.Fatal(err)
	}
	c.head = line.Head
}

// orgChain are the records of the org's chain, and the key of its writer.
func (r *rig) orgChain() (records []chain.Record, raw []byte, keys map[string]ed25519.PublicKey) {
	r.t.Helper()
	var text string
	if err := r.pg.Admin().QueryRow(r.t.Context(), `select public_key from keys where org_id = $1 and purpose = 'dispatch'`, r.org).Scan(&text); err != nil {
		r.t.Fatal(err)
	}
	key, err := capsule.ParsePublicKey(text)
	if err != nil {
		r.t.Fatal(err)
	}
	err = r.tender.Store.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListChainRecords(ctx, ctldb.ListChainRecordsParams{Chain: r.org, Most: 1000})
		for _, row := range rows {
			record, err := chain.ParseRecord(row.Body)
			if err != nil {
				return err
			}
			records, raw = append(records, record), append(raw, append(row.Body, '\n')...)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return records, raw, map[string]ed25519.PublicKey{capsule.KeyID(key): key}
}

// anchored are the numbers of the install's records that the org's chain names;
// that chain must hold, and so must what it says of the install's.
func (r *rig) anchored() []int64 {
	r.t.Helper()
	records, raw, keys := r.orgChain()
	seqs := []int64{}
	for _, record := range records {
		if record.Anchored != nil && record.Anchored.Chain == r.install {
			seqs = append(seqs, record.Anchored.Seq)
		}
	}
	report, err := chain.Verify(bytes.NewReader(raw), chain.VerifyOptions{Chain: r.org, Keys: keys, AnchorKeys: keys})
	if err != nil || !report.OK() || report.Anchors != len(seqs) {
		r.t.Errorf("the org's chain does not hold: %v %+v", err, report)
	}
	return seqs
}

func TestInstallsChainIsAnchored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	r.tender.Now = func() time.Time { return now }
	c := r.newRunnerChain()
	look := func(when string, want ...int64) {
		t.Helper()
		for range 2 { // a wake-up may come twice
			r.advance(r.install)
			if diff := cmp.Diff(append([]int64{}, want...), r.anchored()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", when, diff)
			}
		}
	}
	look("nothing recorded")
	c.add("enrolled")
	look("the first record", 1)
	c.add("job 1")
	now = now.Add(59 * time.Minute)
	look("within the hour", 1)
	c.add("job 2")
	now = now.Add(time.Minute)
	look("after an hour", 1, 3)
	now = now.Add(2 * time.Hour)
	look("nothing new for hours", 1, 3)
	c.add("job 3")
	look("something new", 1, 3, 4)
	c.add("job 4")
	r.exec(`insert into workflows (id, org_id, install_id, number, inputs_version, kind, state, created_by, finished_at) values ($1, $2, $3, 1, 1, 'deploy', 'succeeded', 'test', $4)`,
		id.New(id.Workflow), r.org, r.install, now.Add(time.Second))
	look("a workflow has ended", 1, 3, 4, 5)
}

// The runner gets the head of the org's chain with its settings, and no settings
// because of it.
func TestSettingsCarryTheOrgsHead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	machine, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`update runners set seal_recipient = 'age1test', public_key = $2 where id = $1`, r.runner, capsule.EncodePublicKey(machine))
	records, _, keys := r.orgChain()
	r.advance(r.install)

	var version int64
	var raw []byte
	read := func() {
		t.Helper()
		if err := r.pg.Admin().QueryRow(t.Context(), `select version, envelope from settings_versions where install_id = $1 order by version desc limit 1`, r.install).Scan(&version, &raw); err != nil {
			t.Fatal(err)
		}
	}
	read()
	var envelope capsule.Envelope
	if err := json.Unmarshal(raw, &envelope); err != nil {
		t.Fatal(err)
	}
	var s jobspec.Settings
	if _, err := capsule.Verify(keys, capsule.SettingsType, envelope, &s); err != nil {
		t.Fatal(err)
	}
	if s.OrgHead == nil || s.OrgHead.Chain != r.org || s.OrgHead.Seq != int64(len(records)) {
		t.Fatalf("settings carry head %+v, want that of record %d of %s", s.OrgHead, len(records), r.org)
	}
	if err := chain.VerifyHead(keys, *s.OrgHead); err != nil {
		t.Error(err)
	}

	r.newRunnerChain().add("enrolled")
	r.advance(r.install) // the org's chain grows by an anchor
	// It also grew by the record of whom secrets are sealed to.
	if now, _, _ := r.orgChain(); len(now) != len(records)+2 {
		t.Fatalf("%d records, want %d", len(now), len(records)+2)
	}
	r.advance(r.install)
	if read(); version != 1 {
		t.Errorf("settings have version %d, want 1", version)
	}
}

// The settings carry what the vendor signed against releases of the install's app: new
// ones as soon as there is more, at most 32, the newest, and none of another app.
func TestSettingsCarryRevocations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	machine, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`update runners set seal_recipient = 'age1test', public_key = $2 where id = $1`, r.runner, capsule.EncodePublicKey(machine))
	r.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, 'sha256:' || repeat('0', 64), 1, 'x')`, r.org)
	other := id.New(id.App)
	r.exec(`insert into apps (id, org_id, name) values ($1, $2, 'other')`, other, r.org)
	for _, app := range []string{"hello", "other"} {
		r.exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by)
			select 'cfg_' || name, org_id, id, 1, 'd', 'sha256:' || repeat('0', 64), '{}', 'test' from apps where name = $1`, app)
		r.exec(`insert into releases (id, org_id, app_id, number, config_id, made_by, digest) select 'rel_' || name, org_id, id, 1, 'cfg_' || name, 'sync', 'd' from apps where name = $1`, app)
	}
	revoke := func(app string, n int) {
		t.Helper()
		env, err := json.Marshal(capsule.Envelope{PayloadType: "test", Payload: fmt.Sprint(app, n)})
		if err != nil {
			t.Fatal(err)
		}
		r.exec(`insert into release_revocations (org_id, release_id, digest, key_id, reason, envelope, issued_at, added_by, added_at)
			values ($1, 'rel_' || $2::text, 'd' || $3::int, 'k', 'why', $4, now(), 'test', now() + $3::int * interval '1 second')`, r.org, app, n, env)
	}
	last := func() (version int64, payloads []string) {
		t.Helper()
		r.advance(r.install)
		var env capsule.Envelope
		var s jobspec.Settings
		if err := r.pg.Admin().QueryRow(t.Context(), `select version, envelope from settings_versions where install_id = $1 order by version desc limit 1`, r.install).Scan(&version, &env); err != nil {
			t.Fatal(err)
		}
		_, _, keys := r.orgChain()
		if _, err := capsule.Verify(keys, capsule.SettingsType, env, &s); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Revoked {
			payloads = append(payloads, e.Payload)
		}
		return version, payloads
	}
	revoke("other", 1)
	if version, got := last(); version != 1 || len(got) != 0 {
		t.Errorf("version %d carries %v, want 1 without any", version, got)
	}
	for n := 1; n <= 40; n++ {
		revoke("hello", n)
	}
	for range 2 { // a second look changes nothing
		if version, got := last(); version != 2 || len(got) != offer.MaxRevocations || got[0] != "hello40" || got[len(got)-1] != "hello9" {
			t.Errorf("version %d carries %v, want 2 with the newest %d", version, got, offer.MaxRevocations)
		}
	}
}
