package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/seal"
)

// purpose is any; everywhere names each place of a tree with it.
var purpose = seal.Purpose{OrgID: "org_a", InstallID: "ins_a", Kind: seal.KindInput, Path: "password"}

func everywhere([]string) (seal.Purpose, bool) { return purpose, true }

func newIdentity(t *testing.T) *seal.Identity {
	t.Helper()
	id, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSealOpensOnlyForItsIdentityAndUnchanged(t *testing.T) {
	t.Parallel()
	id, other := newIdentity(t), newIdentity(t)
	plain := []byte("state with a secret")
	sealed, err := seal.Seal([]string{id.Recipient()}, purpose, plain)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, plain) {
		t.Fatal("sealed bytes contain the plaintext")
	}
	got, err := seal.Open(id, purpose, sealed)
	if err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("Open = %q, %v", got, err)
	}
	if _, err := seal.Open(other, purpose, sealed); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("Open by another identity: %v, want ErrNotForUs", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if got, err := seal.Open(id, purpose, changed); err == nil {
			t.Fatalf("byte %d changed, Open = %q without error", i, got)
		}
	}
	for cut := range len(sealed) {
		if _, err := seal.Open(id, purpose, sealed[:cut]); err == nil {
			t.Fatalf("cut to %d of %d bytes, Open without error", cut, len(sealed))
		}
	}
}

func TestIdentityRoundTripAndSecrecy(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	back, err := seal.ParseIdentity(id.String() + "\n")
	if err != nil || back.Recipient() != id.Recipient() {
		t.Fatalf("ParseIdentity = %v, %v", back, err)
	}
	raw, err := json.Marshal(map[string]any{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(id), fmt.Sprintf("%v %+v %#v %s %q %x", id, id, id, id, id, id), fmt.Sprintf("%v %x", *id, *id), string(raw)} {
		if strings.Contains(text, "AGE-SECRET") || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", id.String())) {
			t.Errorf("printed identity shows its secret: %s", text)
		}
	}
	secret := id.String()[:len(id.String())-1] + "!"
	if _, err := seal.ParseIdentity(secret); err == nil || strings.Contains(err.Error(), secret[:30]) {
		t.Errorf("ParseIdentity of a broken secret: %v", err)
	}
	if _, err := seal.Seal([]string{"age1nonsense"}, purpose, nil); err == nil {
		t.Error("Seal to a broken recipient: no error")
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	plain := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // several age chunks
	var sealed bytes.Buffer
	w, err := seal.NewWriter(&sealed, []string{id.Recipient()}, purpose)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, bytes.NewReader(plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cut := sealed.Bytes()[:sealed.Len()-100]
	r, err := seal.NewReader(bytes.NewReader(sealed.Bytes()), id, purpose)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	if r, err = seal.NewReader(bytes.NewReader(cut), id, purpose); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a cut stream ends without error")
	}
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	tree := map[string]any{
		"host":     "db.internal",
		"password": "hunter22",
		"port":     json.Number("5432"),
		"users":    []any{map[string]any{"name": "a", "token": "t0k3n-a"}, map[string]any{"name": "b", "token": nil}},
		"tls":      map[string]any{"key": "k", "big": json.Number("9007199254740993")},
	}
	sensitive := func(path []string) (seal.Purpose, bool) {
		last := ""
		if len(path) > 0 {
			last = path[len(path)-1]
		}
		p := purpose
		p.Path = seal.Path(path...)
		return p, last == "password" || last == "token" || last == "tls"
	}
	sealed, err := seal.SealLeaves([]string{id.Recipient()}, tree, sensitive)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter22", "t0k3n-a", "9007199254740993"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("sealed tree shows %q: %s", secret, raw)
		}
	}
	if !seal.HasSealed(sealed) || seal.HasSealed(tree) {
		t.Errorf("HasSealed = %v, %v, want true, false", seal.HasSealed(sealed), seal.HasSealed(tree))
	}

	wantRedacted := map[string]any{
		"host": "db.internal", "password": "(sealed)", "port": json.Number("5432"), "tls": "(sealed)",
		"users": []any{map[string]any{"name": "a", "token": "(sealed)"}, map[string]any{"name": "b", "token": "(sealed)"}},
	}
	if diff := cmp.Diff(wantRedacted, seal.RedactLeaves(sealed)); diff != "" {
		t.Errorf("RedactLeaves (-want +got):\n%s", diff)
	}

	// Over the wire and back, and sealing again leaves sealed leaves alone.
	var received any
	if err := json.Unmarshal(raw, &received); err != nil {
		t.Fatal(err)
	}
	again, err := seal.SealLeaves([]string{id.Recipient()}, received, sensitive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(received, again); diff != "" {
		t.Errorf("sealed twice (-once +twice):\n%s", diff)
	}
	opened, err := seal.OpenLeaves(id.Opener(), sealed, sensitive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(tree), opened); diff != "" {
		t.Errorf("OpenLeaves (-want +got):\n%s", diff)
	}
	if _, err := seal.OpenLeaves(newIdentity(t).Opener(), sealed, sensitive); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("OpenLeaves by another identity: %v, want ErrNotForUs", err)
	}
}

func TestLeafHidesLength(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	length := func(secret string) int {
		out, err := seal.SealLeaves([]string{id.Recipient()}, secret, everywhere)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.(map[string]any)["$sealed"].(string))
	}
	want := length("")
	for _, secret := range []string{"a", "0123456789", strings.Repeat("x", 62)} {
		if got := length(secret); got != want {
			t.Errorf("%d bytes seal to %d characters, empty to %d", len(secret), got, want)
		}
	}
	if got := length(strings.Repeat("x", 63)); got == want {
		t.Error("a secret past the padding has the same length: nothing is measured")
	}
}

func TestNotALeaf(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	for name, tree := range map[string]any{
		"more keys":    map[string]any{"$sealed": "x", "and": "more"},
		"not a string": map[string]any{"$sealed": 1},
	} {
		if seal.HasSealed(tree) {
			t.Errorf("%s: HasSealed = true", name)
		}
	}
	for name, text := range map[string]string{"not base64": "***", "not age": "AAAA"} {
		if _, err := seal.OpenLeaves(id.Opener(), map[string]any{"a": map[string]any{"$sealed": text}}, everywhere); err == nil || !strings.HasPrefix(err.Error(), "at a: ") {
			t.Errorf("%s: error %v, want one that names the path", name, err)
		}
	}
	if got := seal.RedactLeaves(map[string]any{"f": func() {}}); got != seal.Redacted {
		t.Errorf("RedactLeaves of what is not JSON = %v", got)
	}
}

func TestMasterKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	var wg sync.WaitGroup
	recipients := make([]string, 8)
	for i := range recipients { // services that start together
		wg.Go(func() {
			key, err := seal.LoadOrCreateMasterKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			id, err := key.Org("org_a")
			if err != nil {
				t.Error(err)
				return
			}
			recipients[i] = id.Recipient()
		})
	}
	wg.Wait()
	for _, r := range recipients {
		if r == "" || r != recipients[0] {
			t.Fatalf("identities differ: %v", recipients)
		}
	}

	key, err := seal.LoadOrCreateMasterKey(path)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := key.Org("org_a")
	b, err := key.Org("org_b")
	if err != nil || a.Recipient() == b.Recipient() {
		t.Fatalf("orgs share a key: %v, %v", a, err)
	}
	if _, err := age.ParseX25519Identity(a.String()); err != nil {
		t.Errorf("derived identity is not age's: %v", err)
	}
	sealed, err := seal.Seal([]string{a.Recipient()}, purpose, []byte("secret of a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Open(b, purpose, sealed); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("org b opens what is org a's: %v", err)
	}
	if _, err := key.Org(""); err == nil {
		t.Error("Org of no org: no error")
	}

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v %v %x", key, key, key, *key, *key); strings.ReplaceAll(text, "master key", "") != "    " {
		t.Errorf("master key prints as %q", text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}

	t.Run("wider permissions are refused", func(t *testing.T) {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o644, 0o666} {
			wide := filepath.Join(t.TempDir(), "wide")
			if err := os.WriteFile(wide, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(wide, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := seal.LoadOrCreateMasterKey(wide); !errors.Is(err, seal.ErrWidePermissions) {
				t.Errorf("mode %04o: %v, want ErrWidePermissions", mode, err)
			}
		}
	})
	t.Run("another file is refused and kept", func(t *testing.T) {
		for _, text := range []string{"", "hello", string(content[:len(content)-5])} {
			file := filepath.Join(t.TempDir(), "other")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := seal.LoadOrCreateMasterKey(file); err == nil {
				t.Errorf("file %.10q: no error", text)
			}
			if now, _ := os.ReadFile(file); string(now) != text {
				t.Errorf("file %.10q was overwritten", text)
			}
		}
	})
}
