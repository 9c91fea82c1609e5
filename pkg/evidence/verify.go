package evidence

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/pkg/offer"
)

// Report is what Verify found.
type Report struct {
	Index  Index         `json:"index"`
	Chain  chain.Report  `json:"chain"`
	Egress egress.Report `json:"egress"`
	// Given: the machine's key was given from elsewhere. Otherwise it is the one that
	// the folder names, and anybody could have made the folder up.
	Given   bool `json:"key_given"`
	Changes int  `json:"changes"`
	Orders  int  `json:"orders"`  // signed by a dispatch key that the runner trusts
	Answers int  `json:"answers"` // signatures of the customer's side that are good
	// Absent are documents of changes that the runner had not kept: it made them before it kept any.
	Absent []string `json:"absent,omitempty"`
	// Problems are all that is wrong.
	Problems []string `json:"problems,omitempty"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Options say what a folder is checked against.
type Options struct {
	// Keys are the machine's, by id, from elsewhere than the folder.
	Keys map[string]ed25519.PublicKey
	// Heads are heads of the install's chain that others kept, HeadKeys who signed them.
	Heads    []chain.SignedHead
	HeadKeys map[string]ed25519.PublicKey
}

type folder struct {
	dir    string
	o      Options
	report Report
}

func (f *folder) bad(format string, args ...any) {
	f.report.Problems = append(f.report.Problems, fmt.Sprintf(format, args...))
}

// Verify checks a folder. The error is about reading.
func Verify(dir string, o Options) (Report, error) {
	f := &folder{dir: dir, o: o, report: Report{Given: len(o.Keys) > 0}}
	if !f.index() {
		return f.report, nil
	}
	if err := f.files(); err != nil {
		return f.report, err
	}
	if !f.report.OK() {
		return f.report, nil // what follows would only say it again
	}
	for _, check := range []func() error{f.chain, f.egress, f.changes, f.documents} {
		if err := check(); err != nil {
			f.bad("%v", err)
		}
	}
	return f.report, nil
}

// index reads the index and checks its signature.
func (f *folder) index() bool {
	var env capsule.Envelope
	raw, err := os.ReadFile(filepath.Join(f.dir, IndexFile))
	if err == nil {
		err = json.Unmarshal(raw, &env)
	}
	if err != nil {
		f.bad("%s cannot be read: %v", IndexFile, err)
		return false
	}
	keys := f.o.Keys
	if len(keys) == 0 {
		var named Index
		payload, _ := base64.StdEncoding.DecodeString(env.Payload)
		_ = json.Unmarshal(payload, &named)
		key, err := capsule.ParsePublicKey(named.Machine)
		if err != nil {
			f.bad("%s names no key: %v", IndexFile, err)
			return false
		}
		keys = map[string]ed25519.PublicKey{capsule.KeyID(key): key}
	}
	signer, err := capsule.Verify(keys, IndexType, env, &f.report.Index)
	if err != nil {
		f.bad("%s is not signed by the machine's key: %v", IndexFile, err)
		return false
	}
	f.o.Keys = map[string]ed25519.PublicKey{signer: keys[signer]}
	return true
}

// files compares the folder with the index.
func (f *folder) files() error {
	here, err := List(f.dir)
	if err != nil {
		return err
	}
	there := map[string]File{}
	for _, file := range here {
		there[file.Path] = file
	}
	for _, want := range f.report.Index.Files {
		got, found := there[want.Path]
		switch {
		case !found:
			f.bad("%s is missing", want.Path)
		case got.Size < want.Size:
			f.bad("%s was cut: %d of %d bytes, or changed", want.Path, got.Size, want.Size)
		case got != want:
			f.bad("%s was changed", want.Path)
		}
		delete(there, want.Path)
	}
	for _, file := range here {
		if _, extra := there[file.Path]; extra {
			f.bad("%s is not in the index: somebody added it", file.Path)
		}
	}
	return nil
}

func (f *folder) chain() error {
	in, err := os.Open(filepath.Join(f.dir, ChainFile))
	if err != nil {
		return err
	}
	defer in.Close()
	f.report.Chain, err = chain.VerifyOf(f.o.Keys, in, chain.VerifyOptions{
		Chain: f.report.Index.InstallID, Heads: f.o.Heads, HeadKeys: f.o.HeadKeys, Check: new(offer.History).Check,
	})
	if err != nil {
		return err
	}
	for _, w := range f.report.Chain.Writers() {
		if w.EndedBy > 0 {
			f.report.Absent = append(f.report.Absent, fmt.Sprintf("records %d to %d are of machine %s, which is gone: its egress ledger, and orders and plans that it kept", w.FirstSeq, w.LastSeq, w.KeyID))
		}
	}
	switch {
	case !f.report.Chain.OK():
		f.bad("%s: record %d %s", ChainFile, f.report.Chain.FirstBad, f.report.Chain.Problem)
	case f.report.Chain.Head != f.report.Index.ChainHead:
		f.bad("%s ends at record %d, the index says %d", ChainFile, f.report.Chain.Head.Seq, f.report.Index.ChainHead.Seq)
	}
	return nil
}

func (f *folder) egress() error {
	in, err := os.Open(filepath.Join(f.dir, ChainFile))
	if err != nil {
		return err
	}
	defer in.Close()
	anchors, err := egress.Anchors(in)
	if err != nil {
		return err
	}
	f.report.Egress, err = egress.Verify(filepath.Join(f.dir, EgressDir), anchors)
	if err == nil && !f.report.Egress.OK() {
		f.bad("%s: %s", EgressDir, f.report.Egress.Problem)
	}
	return err
}

// changes makes the files for auditors again.
func (f *folder) changes() error {
	list, err := Changes(f.dir, f.report.Index.Since)
	if err != nil {
		return err
	}
	f.report.Changes = len(list)
	asJSON, asCSV, err := ChangesFiles(list)
	if err != nil {
		return err
	}
	for name, want := range map[string][]byte{ChangesJSON: asJSON, ChangesCSV: asCSV} {
		got, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			f.bad("%s does not say what the chain and the documents say", name)
		}
	}
	return nil
}

// trusted is what is read of the runner's trust.json.
type trusted struct {
	DispatchKeys []struct {
		KeyID     string `json:"key_id"`
		PublicKey string `json:"public_key"`
	} `json:"dispatch_keys"`
	Consent *consent.Config `json:"consent"`
}

// documents checks orders, plans and consents against the chain.
func (f *folder) documents() error {
	var trust trusted
	if _, err := readJSON(f.dir, TrustFile, &trust); err != nil {
		return err
	}
	dispatch := map[string]ed25519.PublicKey{}
	var vendor []ed25519.PublicKey
	for _, k := range trust.DispatchKeys {
		key, err := capsule.ParsePublicKey(k.PublicKey)
		if err != nil {
			return fmt.Errorf("%s: %w", TrustFile, err)
		}
		dispatch[k.KeyID] = key
		vendor = append(vendor, key)
	}
	var config consent.Config
	if trust.Consent != nil {
		config = *trust.Consent
	}
	var machine ed25519.PublicKey
	for _, machine = range f.o.Keys {
		break
	}
	panel, err := config.Read(machine, vendor)
	if err != nil {
		return fmt.Errorf("%s: %w", TrustFile, err)
	}
	return records(filepath.Join(f.dir, ChainFile), func(r chain.Record) error {
		if r.Kind != chain.Intent || r.Time.Before(f.report.Index.Since) {
			return nil
		}
		if err := f.order(r, dispatch); err != nil {
			return err
		}
		if r.Consent == nil {
			return nil
		}
		for _, env := range r.Consent.Signed {
			ids, payload, err := consent.Signers(panel.Keys(), consent.ForStatement, env)
			if err != nil || len(ids) == 0 {
				// A holder that was removed since signs with a key that trust.json has no more.
				f.report.Absent = append(f.report.Absent, fmt.Sprintf("record %d: the key of a consent is not in trust.json any more", r.Seq))
				continue
			}
			if s, err := consent.ParseStatement(payload); err != nil || s.Effect != r.Effect {
				f.bad("record %d carries a consent to another effect", r.Seq)
				continue
			}
			f.report.Answers += len(ids)
		}
		return nil
	})
}

// order checks the vendor's order and the plan of an intent.
func (f *folder) order(r chain.Record, dispatch map[string]ed25519.PublicKey) error {
	if r.Capsule == "" {
		return nil // a scheduled run has no order of its own
	}
	var env capsule.Envelope
	found, err := readJSON(f.dir, OrderFile(r.Job), &env)
	if err != nil {
		return err
	}
	if !found {
		f.report.Absent = append(f.report.Absent, fmt.Sprintf("record %d: %s", r.Seq, OrderFile(r.Job)))
		return nil
	}
	if env.PayloadDigest() != r.Capsule {
		f.bad("%s is not the order of record %d", OrderFile(r.Job), r.Seq)
		return nil
	}
	var order capsule.Order
	if _, err := capsule.Verify(dispatch, capsule.OrderType, env, &order); err != nil {
		f.bad("%s is not signed by a dispatch key of %s: %v", OrderFile(r.Job), TrustFile, err)
		return nil
	}
	f.report.Orders++
	var plan Plan
	if found, err = readJSON(f.dir, PlanFile(order.ChangeID), &plan); err != nil {
		return err
	}
	switch {
	case !found:
		f.report.Absent = append(f.report.Absent, fmt.Sprintf("record %d: %s", r.Seq, PlanFile(order.ChangeID)))
	case plan.EffectDigest != r.Effect || plan.Effect.Digest() != r.Effect:
		f.bad("%s is not the effect of record %d", PlanFile(order.ChangeID), r.Seq)
	}
	return nil
}
