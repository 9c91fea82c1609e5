package secretstore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/leaves"
	"github.com/berth-dev/berth/runner/agent/secretstore"
)

const value = "correct horse battery staple"

func open(t *testing.T) secretstore.Store {
	t.Helper()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	keys, err := dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	return secretstore.Store{
		Dir: dir.CustomerSecrets(), Keys: keys, Now: time.Now,
		Runner: datadir.Runner{RunnerID: "run1", OrgID: "org1", InstallID: "ins1", Kind: "install"},
	}
}

func TestDeclaredSecretsAreMade(t *testing.T) {
	t.Parallel()
	s := open(t)
	mode, other := "careful one", "reckless one"
	list := []customersecret.Declaration{
		{Name: "token", Required: true}, {Name: "key", AutoGenerate: true, Format: customersecret.FormatBase64}, {Name: "mode", Default: &mode}, {Name: "certificate", Format: customersecret.FormatBase64},
	}
	for range 2 { // once, and then it is kept
		if err := s.Declare(list); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get("token"); !errors.Is(err, secretstore.ErrNotThere) {
		t.Errorf("a required secret was made: %v", err)
	}
	key, err := s.Get("key")
	if err != nil || key.Version.Version != 1 || key.SetBy != customersecret.ByRunner {
		t.Fatalf("the made secret is %+v, %v", key.Version, err)
	}
	if text, err := s.Open(key); err != nil || len(mustDecode(t, text)) != customersecret.GeneratedLength {
		t.Errorf("the made secret has %d bytes, %v", len(text), err)
	}
	if _, err := s.Set("certificate", "this is no base64!", customersecret.ByCustomer); !errors.Is(err, customersecret.ErrValue) {
		t.Errorf("a value that is no base64 was taken: %v", err)
	}
	if k, err := s.Get("mode"); err != nil || k.SetBy != customersecret.ByDefault {
		t.Errorf("the default is %+v, %v", k.Version, err)
	}
	list[2].Default = &other
	if err := s.Declare(list); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Get("mode"); err != nil || k.Version.Version != 2 {
		t.Errorf("another default is %+v, %v", k.Version, err)
	}
	if _, err := s.Set("mode", value, customersecret.ByCustomer); err != nil {
		t.Fatal(err)
	}
	if err := s.Declare(list); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Get("mode"); err != nil || k.SetBy != customersecret.ByCustomer {
		t.Errorf("the app's default won over the customer: %+v, %v", k.Version, err)
	}
}

func mustDecode(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal("the made secret is no base64")
	}
	return raw
}

func TestVersionsAndWhatIsOnDisk(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i, set := range []string{value, value, value + "2"} {
		v, err := s.Set("token", set, customersecret.ByCustomer)
		if want := []int{1, 1, 2}[i]; err != nil || v.Version != want {
			t.Errorf("set %d: version %d, %v, want %d", i, v.Version, err, want)
		}
	}
	if err := s.Unset("token"); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Set("token", value, customersecret.ByCustomer); err != nil || v.Version != 4 {
		t.Errorf("after it was taken away: version %d, %v, want 4", v.Version, err)
	}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("horse")) {
			t.Errorf("%s has the value in clear", path)
		}
		if info, _ := d.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tree is the state tree of a job, with secrets as ctl-api tells of them.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func only(names ...string) func(string) bool {
	return func(name string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") }
}

func TestFill(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, name := range []string{"token", "other"} {
		if _, err := s.Set(name, value+name, customersecret.ByCustomer); err != nil {
			t.Fatal(err)
		}
	}
	state := tree(t, `{"secrets": {"token": {"version": 1}, "other": {"version": 1}, "none": {"version": 0}}}`)
	if _, err := s.Fill(state, secretstore.Wanted{Value: only("token", "none"), Exact: true}); err != nil {
		t.Fatal(err)
	}
	opened, err := leaves.Open(s.Keys.Open, state, leaves.Names{{"secrets", "token", "value"}, {"secrets", "none"}}, interpolate.SealedLeaves("org1", "ins1", state))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(opened)
	if err != nil {
		t.Fatal(err)
	}
	out, err := interpolate.Render("{{ .nuon.secrets.token.value }}|{{ .nuon.secrets.none.value }}|{{ .nuon.secrets.token.exists }}", interpolate.NewState(opened.(map[string]any)), interpolate.Options{})
	if err != nil || out != value+"token||true" {
		t.Errorf("rendered %q, %v", out, err)
	}
	if bytes.Contains(text, []byte(value+"other")) {
		t.Error("a secret that no template names was opened")
	}
}

// TestControlPlaneGetsNoOtherSecret is the attacks of a control plane on the tree.
func TestControlPlaneGetsNoOtherSecret(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, name := range []string{"token", "other"} {
		if _, err := s.Set(name, value+name, customersecret.ByCustomer); err != nil {
			t.Fatal(err)
		}
	}
	other, err := s.Get("other")
	if err != nil {
		t.Fatal(err)
	}
	sealed := `{"$sealed": "` + base64.StdEncoding.EncodeToString(other.Sealed) + `"}`
	for name, text := range map[string]string{
		"ciphertext of another secret": `{"secrets": {"token": {"version": 1, "value": ` + sealed + `}}}`,
		"a value of its own":           `{"secrets": {"token": {"version": 1, "value": "known to the vendor"}}}`,
		"ciphertext, as a rehearsal":   `{"rehearsal": {}, "secrets": {"token": {"version": 1, "value": ` + sealed + `}}}`,
	} {
		if _, err := s.Fill(tree(t, text), secretstore.Wanted{Value: only("token")}); err == nil || strings.Contains(err.Error(), "known to") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Where other sealed values belong, a secret does not open.
	for _, text := range []string{`{"inputs": {"inputs": {"other": ` + sealed + `}}}`, `{"sandbox": {"outputs": {"other": ` + sealed + `}}}`,
		`{"secrets": {"other": {"version": 2, "value": ` + sealed + `}}}`, `{"secrets": {"token": {"version": 1, "value": ` + sealed + `}}}`} {
		state := tree(t, text)
		_, err := leaves.Open(s.Keys.Open, state, leaves.Names{{}}, interpolate.SealedLeaves("org1", "ins1", state))
		if !errors.Is(err, seal.ErrOtherPurpose) {
			t.Errorf("%s: %v", text[:30], err)
		}
	}
	state := tree(t, `{"secrets": {"../identity": {"version": 1}}}`)
	if _, err := s.Fill(state, secretstore.Wanted{Value: func(string) bool { return true }}); err == nil {
		t.Error("a path was taken for the name of a secret")
	}
	// An order for another version than the present one is planned again.
	state = tree(t, `{"secrets": {"token": {"version": 7}}}`)
	if _, err := s.Fill(state, secretstore.Wanted{Value: only("token"), Exact: true}); !errors.Is(err, secretstore.ErrMoved) {
		t.Errorf("a plan for another version: %v", err)
	}
	if _, err := s.Fill(state, secretstore.Wanted{Value: only("token")}); err != nil {
		t.Errorf("a check reads the newest: %v", err)
	}
	// The file of one secret in the place of another.
	if err := os.Rename(filepath.Join(s.Dir, "other.json"), filepath.Join(s.Dir, "token.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("token"); err == nil {
		t.Error("the file of another secret is taken for the secret")
	}
}

// TestTell holds that what changes is told at once, and values never.
func TestTell(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan []customersecret.Version, 10)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Tell(ctx, func(_ context.Context, list []customersecret.Version) error { told <- list; return nil }, func(err error) { t.Error(err) })
	})
	for want := 1; want <= 2; want++ {
		if _, err := s.Set("token", strings.Repeat(value, want), customersecret.ByCustomer); err != nil {
			t.Fatal(err)
		}
		select {
		case list := <-told:
			raw, _ := json.Marshal(list)
			if len(list) != 1 || list[0].Version != want || bytes.Contains(raw, []byte("horse")) {
				t.Errorf("told %s", raw)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was told")
		}
	}
	cancel()
	wg.Wait()
}
