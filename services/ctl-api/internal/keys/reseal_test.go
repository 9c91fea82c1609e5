package keys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// A database of the version before is sealed again once, at the start; after that
// the first form opens nowhere, whatever the rows say.
func TestResealAtRest(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := database.New(pg.AsRole(store.RoleCtl))
	master, err := seal.LoadOrCreateMasterKey(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	ring := keys.New(master)
	made, err := access.CreateOrg(t.Context(), st, ring, access.OrgSpec{Name: "acme", Admin: "ada", Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	org := made.Org.OrgID
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pg.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	read := func(sql string, args ...any) (b []byte) {
		t.Helper()
		if err := pg.Admin().QueryRow(t.Context(), sql, args...).Scan(&b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	identity, err := master.Org(org)
	if err != nil {
		t.Fatal(err)
	}
	keyID := string(read(`select convert_to(key_id, 'utf8') from keys where purpose = 'dispatch'`))
	private, err := ring.Open(keys.KeyAtRest(org, keyID), read(`select private_sealed from keys where purpose = 'dispatch'`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(map[string]string{"body": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	exec(`update keys set private_sealed = $1 where purpose = 'dispatch'`, firstForm(t, identity, private))
	exec(`insert into idempotency_keys (org_id, account_id, key, route, body_hash, response) values ($1, $2, 'k', 'r', '', $3)`, org, made.Admin.ID, firstForm(t, identity, answer))
	exec(`update orgs set seal_form = 1`)

	fresh := func() *keys.Ring { return keys.New(master) } // a process that has opened nothing yet
	dispatch := func(k *keys.Ring) error {
		return st.Tx(t.Context(), org, func(ctx context.Context, tx *database.Tx) error {
			_, err := k.Dispatch(ctx, tx)
			return err
		})
	}
	if err := dispatch(fresh()); !errors.Is(err, seal.ErrFirstForm) {
		t.Fatalf("before it was sealed again: %v, want ErrFirstForm", err)
	}
	for range 2 { // the second finds nothing to do
		if err := fresh().Reseal(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if err := dispatch(fresh()); err != nil {
		t.Errorf("dispatch key: %v", err)
	}
	got, err := ring.Open(keys.AnswerAtRest(org, made.Admin.ID, "k"), read(`select response from idempotency_keys`))
	if err != nil || !bytes.Equal(got, answer) {
		t.Errorf("kept answer: %q, %v", got, err)
	}
	if n := strings.Count(string(read(`select convert_to(string_agg(convert_from(body, 'utf8'), '|'), 'utf8') from chain_records`)), "at rest again"); n != 1 {
		t.Errorf("the org's chain says %d times that it was done, want once", n)
	}

	// Somebody puts an old row back, or another row's bytes in its place.
	exec(`update keys set private_sealed = $1 where purpose = 'dispatch'`, firstForm(t, identity, private))
	if err := fresh().Reseal(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if err := dispatch(fresh()); !errors.Is(err, seal.ErrFirstForm) {
		t.Errorf("an old row: %v, want ErrFirstForm", err)
	}
	exec(`update keys set private_sealed = (select response from idempotency_keys) where purpose = 'dispatch'`)
	if err := dispatch(fresh()); !errors.Is(err, seal.ErrOtherPurpose) {
		t.Errorf("another row: %v, want ErrOtherPurpose", err)
	}
}

// firstForm seals as it was done before sealed bytes named their purpose.
func firstForm(t *testing.T, id *seal.Identity, plain []byte) []byte {
	t.Helper()
	to, err := age.ParseX25519Recipient(id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
