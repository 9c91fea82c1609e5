package datadir

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

// saltBytes is the length of the salt: as much as the digest under it.
const saltBytes = 32

// Keys are the secrets that a runner makes for itself at its first start. None
// of them ever leaves the machine.
type Keys struct {
	// Sign proves who the runner is, and signs its chain.
	Sign ed25519.PrivateKey
	// Seal opens what was sealed to the install.
	Seal *seal.Identity
	// Salt goes into digests of what could be guessed.
	Salt []byte
	// Recovery is the public half of the customer's recovery key, zero without one.
	Recovery recovery.Public
	// Vouched is the recovery key's signature for Sign, nil without one.
	Vouched *capsule.Envelope

	// firstForm says whether what was sealed before sealed bytes named their purpose
	// still opens here; nil: no.
	firstForm func() (bool, error)
}

// Recipients are who opens what this runner seals: itself, and the customer's
// recovery key.
func (k Keys) Recipients() []string {
	if k.Recovery.Recipient == "" {
		return []string{k.Seal.Recipient()}
	}
	return []string{k.Seal.Recipient(), k.Recovery.Recipient}
}

// Open opens what was sealed to this runner for the purpose.
func (k Keys) Open(purpose seal.Purpose, sealed []byte) ([]byte, error) {
	plain, err := seal.Open(k.Seal, purpose, sealed)
	if k.firstForm == nil || !errors.Is(err, seal.ErrFirstForm) {
		return plain, err
	}
	if first, formErr := k.firstForm(); formErr != nil || !first {
		return nil, errors.Join(err, formErr)
	}
	return seal.OpenFirstForm(k.Seal, sealed)
}

// Public is the half of Sign that others know.
func (k Keys) Public() ed25519.PublicKey {
	public, _ := k.Sign.Public().(ed25519.PublicKey)
	return public
}

// Keys reads the runner's keys; missing ones are made. A damaged one is an
// error and stays as it is: a new key would be another runner.
func (d Dir) Keys() (Keys, error) {
	signPEM, err := loadOrMake(d.identity(), func() ([]byte, error) {
		_, private, err := capsule.GenerateKey()
		if err != nil {
			return nil, err
		}
		return capsule.MarshalPrivateKey(private)
	})
	if err != nil {
		return Keys{}, fmt.Errorf("identity of the runner %s: %w", d.identity(), err)
	}
	sign, err := capsule.ParsePrivateKey(signPEM)
	if err != nil {
		return Keys{}, fmt.Errorf("identity of the runner %s: %w", d.identity(), err)
	}
	sealText, err := loadOrMake(d.sealIdentity(), func() ([]byte, error) {
		id, err := seal.GenerateIdentity()
		if err != nil {
			return nil, err
		}
		// Nothing was ever sealed to this identity in the first form.
		if err := d.EndFirstForm(); err != nil {
			return nil, err
		}
		return []byte(id.String() + "\n"), nil
	})
	if err != nil {
		return Keys{}, fmt.Errorf("seal identity %s: %w", d.sealIdentity(), err)
	}
	id, err := seal.ParseIdentity(string(sealText))
	if err != nil {
		return Keys{}, fmt.Errorf("seal identity %s: %w", d.sealIdentity(), err)
	}
	salt, err := loadOrMake(d.salt(), func() ([]byte, error) {
		b := make([]byte, saltBytes)
		_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
		return b, nil
	})
	if err != nil {
		return Keys{}, fmt.Errorf("salt %s: %w", d.salt(), err)
	}
	if len(salt) != saltBytes {
		return Keys{}, fmt.Errorf("salt %s: has %d bytes, not %d", d.salt(), len(salt), saltBytes)
	}
	var trust Trust
	if _, err := ReadJSON(d.Trust(), &trust); err != nil {
		return Keys{}, err
	}
	keys := Keys{Sign: sign, Seal: id, Salt: salt, firstForm: d.FirstForm}
	if trust.Recovery != nil {
		if err := trust.Recovery.Check(); err != nil {
			return Keys{}, fmt.Errorf("%s: %w", d.Trust(), err)
		}
		keys.Recovery = *trust.Recovery
		if trust.Vouched != nil { // one for another machine, or by an earlier key, is of no use
			if machine, err := recovery.VerifyMachine(keys.Recovery, *trust.Vouched); err == nil && machine.Equal(keys.Public()) {
				keys.Vouched = trust.Vouched
			}
		}
	}
	return keys, nil
}

// sealForm is what the marker says of what opens here.
const sealForm = "berth-seal-2\n"

// FirstForm reports whether what was sealed in the first form still opens: until
// EndFirstForm was called.
func (d Dir) FirstForm() (bool, error) {
	data, err := os.ReadFile(d.sealForm())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("form of seals: %w", err)
	case string(data) != sealForm:
		return false, fmt.Errorf("form of seals: %s does not say %q", d.sealForm(), strings.TrimSpace(sealForm))
	}
	return false, nil
}

// EndFirstForm makes the directory refuse the first form permanently.
func (d Dir) EndFirstForm() error { return Write(d.sealForm(), []byte(sealForm)) }

func loadOrMake(path string, generate func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = generate(); err != nil {
		return nil, err
	}
	return data, Write(path, data)
}

// SetSalt puts the salt of an install in the place of the one that this machine
// made for itself: a machine that takes over goes on with the digests of the one
// before.
func (d Dir) SetSalt(salt []byte) error {
	if len(salt) != saltBytes {
		return fmt.Errorf("salt: has %d bytes, not %d", len(salt), saltBytes)
	}
	return Write(d.salt(), salt)
}

// SetRecovery makes the public half of the customer's recovery key, and its
// signature for this machine, part of the trust file.
func (d Dir) SetRecovery(key *recovery.Key, now time.Time) error {
	keys, err := d.Keys()
	if err != nil {
		return err
	}
	vouched, err := key.Vouch(keys.Public(), now)
	if err != nil {
		return err
	}
	raw := map[string]json.RawMessage{} // what others wrote there stays
	if _, err := ReadJSON(d.Trust(), &raw); err != nil {
		return err
	}
	for name, value := range map[string]any{"recovery": key.Public(), "vouched": vouched} {
		if raw[name], err = json.Marshal(value); err != nil {
			return err
		}
	}
	return WriteJSON(d.Trust(), raw)
}

// Runner is who the runner is. It is known once the runner is enrolled.
type Runner struct {
	RunnerID  string `json:"runner_id"`
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id,omitempty"` // empty for Build Runners
	Kind      string `json:"kind"`                 // install or build
}

// LoadRunner returns the identity, or found false before the enrolment.
func (d Dir) LoadRunner() (r Runner, found bool, err error) {
	found, err = ReadJSON(d.Runner(), &r)
	return r, found, err
}

// EnrolmentSecret returns the single-use secret that the customer's side put
// into the directory.
func (d Dir) EnrolmentSecret() (string, error) {
	data, err := os.ReadFile(d.Enrolment())
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// Trust is what the runner believes. Only the customer's side writes it.
type Trust struct {
	// DispatchKeys sign settings, and orders for an install.
	DispatchKeys []TrustedKey `json:"dispatch_keys"`
	// BuilderKeys sign orders for builds; only the trust file of a Build Runner
	// has them.
	BuilderKeys   []TrustedKey `json:"builder_keys,omitempty"`
	RunnerAPIURL  string       `json:"runner_api_url"`
	PrivateCAFile string       `json:"private_ca_file,omitempty"`
	// OneHost says that the control plane has one address only: logs and
	// artifacts go to RunnerAPIURL too, whatever a session names.
	OneHost bool `json:"one_host,omitempty"`
	// LogURL and Registry are where logs and artifacts go otherwise; a session
	// that names another place is refused. When they are empty, what the first
	// session names is kept.
	LogURL   string `json:"log_url,omitempty"`
	Registry string `json:"registry,omitempty"` // http(s)://host or http(s)://host:port
	// Recovery is the public half of the customer's recovery key, to which
	// everything is sealed too, and whose signature another machine needs to take
	// this one's place.
	Recovery *recovery.Public `json:"recovery,omitempty"`
	// Vouched is the recovery key's signature for this machine's key. The chain
	// carries it, so that a machine that takes over can tell whose records it is given.
	Vouched *capsule.Envelope `json:"vouched,omitempty"`
	// Consent says whose consent changes of this install need, and which.
	Consent *consent.Config `json:"consent,omitempty"`
	// Vendor says whose releases of the app this runner takes; nil for all that the
	// control plane names.
	Vendor *Vendor `json:"vendor,omitempty"`
	// Images says which images may come into the install, by who signed them; without any
	// rule all may.
	Images []imagetrust.Rule `json:"images,omitempty"`
}

// Vendor is the vendor's key for releases of one app.
type Vendor struct {
	// AppID is the app whose releases the keys sign, "app…".
	AppID string `json:"app_id"`
	// Keys are lines of authorized_keys, or Ed25519 keys in base64 or PEM.
	Keys []string `json:"keys"`
	// AdHocScripts lets scripts pass that are part of no release.
	AdHocScripts bool `json:"ad_hoc_scripts,omitempty"`
}

// Parse reads the keys. A file that says vendor and names no key is an error, so that
// nothing passes for signed by mistake.
func (v Vendor) Parse() ([]consent.Key, error) {
	if v.AppID == "" || len(v.Keys) == 0 {
		return nil, errors.New("vendor: an app_id and at least one key are needed")
	}
	keys := make([]consent.Key, 0, len(v.Keys))
	for i, text := range v.Keys {
		key, err := consent.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("vendor: key %d: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Panel is who agrees to changes here. machine is this machine's own key.
func (t Trust) Panel(machine ed25519.PublicKey) (consent.Panel, error) {
	dispatch, err := t.Keys()
	if err != nil {
		return consent.Panel{}, err
	}
	var config consent.Config
	if t.Consent != nil {
		config = *t.Consent
	}
	return config.Read(machine, slices.Collect(maps.Values(dispatch)))
}

// TrustedKey is a public key with the id under which it signs.
type TrustedKey struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"` // base64 or PEM
}

// LoadTrust reads the trust file. It must be there.
func (d Dir) LoadTrust() (Trust, error) {
	var t Trust
	found, err := ReadJSON(d.Trust(), &t)
	switch {
	case err != nil:
		return t, err
	case !found:
		return t, fmt.Errorf("%s is missing: it says which control plane and which keys this runner trusts", d.Trust())
	case t.RunnerAPIURL == "":
		return t, fmt.Errorf("%s: runner_api_url is missing", d.Trust())
	}
	if _, err := t.Keys(); err != nil {
		return t, fmt.Errorf("%s: %w", d.Trust(), err)
	}
	if _, err := t.Builders(); err != nil {
		return t, fmt.Errorf("%s: %w", d.Trust(), err)
	}
	if _, err := t.Panel(nil); err != nil {
		return t, fmt.Errorf("%s: %w", d.Trust(), err)
	}
	if err := imagetrust.Check(t.Images); err != nil {
		return t, fmt.Errorf("%s: %w", d.Trust(), err)
	}
	return t, nil
}

// Keys returns the dispatch keys by their ids.
func (t Trust) Keys() (map[string]ed25519.PublicKey, error) {
	return byID("dispatch", t.DispatchKeys)
}

// Builders returns the builder keys by their ids.
func (t Trust) Builders() (map[string]ed25519.PublicKey, error) {
	return byID("builder", t.BuilderKeys)
}

func byID(what string, trusted []TrustedKey) (map[string]ed25519.PublicKey, error) {
	keys := make(map[string]ed25519.PublicKey, len(trusted))
	for _, k := range trusted {
		public, err := capsule.ParsePublicKey(k.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("%s key %q: %w", what, k.KeyID, err)
		}
		keys[k.KeyID] = public
	}
	return keys, nil
}
