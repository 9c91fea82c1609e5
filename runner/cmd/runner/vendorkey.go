package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// vendorKeyCommand is whose releases of the app this runner takes.
func (s *settings) vendorKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "vendor-key", Short: "Whose releases of the app may be installed here", Args: noArgs,
		Long: "With a vendor key pinned, this runner takes releases that the vendor signed, and nothing else: no plan and no change of anything that is part of no such release, " +
			"whatever the control plane orders. The key is in vendor of trust.json; in a cluster, change the Secret that it comes from as well.",
	}
	cmd.AddCommand(s.vendorKeyListCommand(), s.vendorKeyAddCommand(), s.vendorKeyRemoveCommand(), s.vendorKeyAcceptCommand(), s.revokeReleaseCommand())
	return cmd
}

// editVendor changes vendor in trust.json. What it was changed to, by whom, and the rotation
// that edit names, are written down first: the agent records them in the chain.
func (s *settings) editVendor(edit func(trust datadir.Trust, runner datadir.Runner) (*datadir.Vendor, *capsule.Envelope, error)) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	trust, err := dir.LoadTrust()
	if err != nil {
		return err
	}
	runner, _, err := dir.LoadRunner()
	if err != nil {
		return err
	}
	var rotation *capsule.Envelope
	if trust.Vendor, rotation, err = edit(trust, runner); err != nil {
		return err
	}
	if trust.Vendor != nil {
		if _, err := trust.Vendor.Parse(); err != nil {
			return err
		}
	}
	change := offers.KeyChange{By: osUser(), At: time.Now().UTC(), Vendor: trust.Vendor, Rotation: rotation}
	if err := (offers.Store{Dir: dir}).WillPin(change); err != nil {
		return err
	}
	return datadir.WriteJSON(dir.Trust(), trust)
}

func (s *settings) vendorKeyAddCommand() *cobra.Command {
	var app string
	var adHoc bool
	cmd := &cobra.Command{
		Use: "add FILE", Short: "Take only releases that a key signed", Args: oneArg("the file of a public key"),
		Long: "Pins a public key of the vendor's (PEM, base64, or a line of authorized_keys), which you got from elsewhere than the control plane, with the id of the app. It takes effect at once: " +
			"deploy a signed release next, because what is installed now counts only once a signed release has it.",
		Example: "  berth-runner trust vendor-key add vendor.key.pub --app app01jd2x7q9zr8w3v5k6m4n0tgha",
	}
	cmd.Flags().StringVar(&app, "app", "", "id of the app whose releases the key signs (berth releases sign prints it)")
	cmd.Flags().BoolVar(&adHoc, "ad-hoc-scripts", false, "also let scripts pass that are part of no release, each with its own decision")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if app == "" {
			return usageError{errors.New("say which app's releases the key signs: --app ID")}
		}
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		key, err := consent.ParseKey(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		err = s.editVendor(func(trust datadir.Trust, _ datadir.Runner) (*datadir.Vendor, *capsule.Envelope, error) {
			dispatch, err := trust.Keys()
			if err != nil {
				return nil, nil, err
			}
			for _, d := range dispatch {
				if key.Is(d) {
					return nil, nil, errors.New("this is the control plane's key: it must not vouch for releases, too")
				}
			}
			v := datadir.Vendor{AppID: app, AdHocScripts: adHoc}
			if was := trust.Vendor; was != nil {
				if was.AppID != app {
					return nil, nil, fmt.Errorf("the keys that are pinned sign releases of app %s: remove them first", was.AppID)
				}
				v.Keys = was.Keys
			}
			if !hasKey(v, key.ID) {
				v.Keys = append(slices.Clone(v.Keys), string(text))
			}
			return &v, nil, nil
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "this install takes releases of app %s that key %s signed, and no others\n", app, key.ID)
		return err
	}
	return cmd
}

func hasKey(v datadir.Vendor, id string) bool {
	keys, err := v.Parse()
	return err == nil && slices.ContainsFunc(keys, func(k consent.Key) bool { return k.ID == id })
}

func (s *settings) vendorKeyRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove KEY", Short: "Trust a vendor key no more", Args: oneArg("the id of a key"),
		Long: "Takes a pinned key away, by its id. What was accepted with it stays accepted. Without any key, this runner takes releases that nobody signed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			left := 0
			err := s.editVendor(func(trust datadir.Trust, _ datadir.Runner) (*datadir.Vendor, *capsule.Envelope, error) {
				if trust.Vendor == nil || !hasKey(*trust.Vendor, args[0]) {
					return nil, nil, fmt.Errorf("this runner trusts no vendor key %q", args[0])
				}
				v := without(*trust.Vendor, args[0])
				if left = len(v.Keys); left == 0 {
					return nil, nil, nil
				}
				return &v, nil, nil
			})
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%d keys are left", left)
			if left == 0 {
				text = "no key is left: this install takes RELEASES THAT NOBODY SIGNED"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %s vouches for releases no more; %s\n", args[0], text)
			return err
		},
	}
}

// without is the vendor without a key.
func without(v datadir.Vendor, id string) datadir.Vendor {
	v.Keys = slices.DeleteFunc(slices.Clone(v.Keys), func(text string) bool {
		key, err := consent.ParseKey(text)
		return err == nil && key.ID == id
	})
	return v
}

func (s *settings) vendorKeyAcceptCommand() *cobra.Command {
	var yes string
	cmd := &cobra.Command{
		Use: "accept FILE", Short: "Accept that another key signs from now on", Args: oneArg("the file of a rotation"),
		Long: "Reads what the vendor's old key signed of its new one (berth releases rotate-key), and shows both. With --yes and the new key's id it puts the new key in the old one's place, and the chain keeps what the old one signed. " +
			"Releases that were accepted stay so.",
		Example: "  berth-runner trust vendor-key accept rotation.json\n  berth-runner trust vendor-key accept rotation.json --yes ed25519:6f1c0a52ad0b3b51c6c1b0d4f2a9e7c1",
	}
	cmd.Flags().StringVar(&yes, "yes", "", "id of the new key, once you have compared it with what the vendor says elsewhere")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		var env capsule.Envelope
		if err := json.Unmarshal(text, &env); err != nil {
			return fmt.Errorf("%s: not a signed rotation", args[0])
		}
		return s.editVendor(func(trust datadir.Trust, runner datadir.Runner) (*datadir.Vendor, *capsule.Envelope, error) {
			if trust.Vendor == nil {
				return nil, nil, errors.New("no vendor key is pinned: pin the new one with vendor-key add")
			}
			keys, err := trust.Vendor.Parse()
			if err != nil {
				return nil, nil, err
			}
			r, err := offer.OpenRotation(keys, env)
			if err != nil {
				return nil, nil, err
			}
			if r.AppID != trust.Vendor.AppID || r.OrgID != runner.OrgID {
				return nil, nil, fmt.Errorf("it is about app %s of org %s, and this install is of app %s of org %s", r.AppID, r.OrgID, trust.Vendor.AppID, runner.OrgID)
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "old key  %s\nnew key  %s\nsigned by the old key at %s\n", r.OldKeyID, r.NewKeyID, r.Issued.Format(time.RFC3339)); err != nil {
				return nil, nil, err
			}
			if yes != r.NewKeyID {
				return nil, nil, fmt.Errorf("nothing was changed: compare the new key's id with what the vendor says elsewhere, then repeat with --yes %s", r.NewKeyID)
			}
			v := without(*trust.Vendor, r.OldKeyID)
			v.Keys = append(v.Keys, r.NewKey)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "from now on the new key counts, and the old one does not")
			return &v, &env, err
		})
	}
	return cmd
}

func (s *settings) revokeReleaseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke-release NUMBER", Short: "Never install a release again", Args: oneArg("the number of a release"),
		Long: "Writes down that a release may not be planned or applied here any more, no matter who signed it. The vendor can revoke a release for all of its customers (berth releases revoke). What it has installed keeps running, and can be removed or replaced. It cannot be undone.",
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[0])
			if err != nil || number < 1 {
				return usageError{fmt.Errorf("%q is no number of a release", args[0])}
			}
			if reason == "" {
				return usageError{errors.New("say why: --reason TEXT")}
			}
			dir, err := s.dir()
			if err != nil {
				return err
			}
			store := offers.Store{Dir: dir}
			if err := store.Revoke(offers.Revocation{Number: number, Reason: reason, By: osUser(), At: time.Now().UTC()}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "release %d is revoked here\n", number)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// vendorView is what is known of signed releases, for people and programs.
type vendorView struct {
	AppID    string              `json:"app_id,omitempty"`
	Keys     []string            `json:"keys"`
	AdHoc    bool                `json:"ad_hoc_scripts,omitempty"`
	Accepted []vendorRelease     `json:"accepted"`
	Revoked  []offers.Revocation `json:"revoked"`
	// RevokedByVendor are those that the vendor revoked, with what it signed.
	RevokedByVendor []offers.VendorRevocation `json:"revoked_by_vendor"`
}

type vendorRelease struct {
	Number   int       `json:"number"`
	Manifest string    `json:"manifest"`
	KeyID    string    `json:"key_id"`
	Accepted time.Time `json:"accepted"`
}

func viewVendor(dir datadir.Dir) (vendorView, error) {
	store, v := offers.Store{Dir: dir}, vendorView{Keys: []string{}, Accepted: []vendorRelease{}, Revoked: []offers.Revocation{}}
	vendor, keys, err := store.Pinned()
	if err != nil {
		return v, err
	}
	v.AppID, v.AdHoc = vendor.AppID, vendor.AdHocScripts
	for _, k := range keys {
		v.Keys = append(v.Keys, k.ID)
	}
	known, err := store.Known()
	if err != nil {
		return v, err
	}
	for _, e := range offers.Newest(known) {
		v.Accepted = append(v.Accepted, vendorRelease{Number: e.Number, Manifest: e.Manifest, KeyID: e.KeyID, Accepted: e.Accepted})
	}
	revoked, err := store.Revoked()
	if err != nil {
		return v, err
	}
	v.Revoked = append(v.Revoked, revoked...)
	byVendor, err := store.RevokedByVendor()
	v.RevokedByVendor = append([]offers.VendorRevocation{}, byVendor...)
	return v, err
}

func (s *settings) vendorKeyListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the vendor's keys, and the releases that were accepted and revoked", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			v, err := viewVendor(dir)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), v)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			if len(v.Keys) == 0 {
				fmt.Fprintln(w, "no vendor key: this install takes releases that nobody signed")
			}
			for _, id := range v.Keys {
				fmt.Fprintf(w, "key\t%s\tfor app %s\n", id, visible.Line(v.AppID))
			}
			for _, r := range v.Accepted {
				fmt.Fprintf(w, "accepted\trelease %d\t%s\tby %s\n", r.Number, r.Accepted.Format(time.RFC3339), r.KeyID)
			}
			for _, r := range v.Revoked {
				fmt.Fprintf(w, "revoked\trelease %d\t%s\tby %s here: %s\n", r.Number, r.At.Format(time.RFC3339), visible.Line(r.By), visible.Line(r.Reason))
			}
			for _, r := range v.RevokedByVendor {
				fmt.Fprintf(w, "revoked\trelease %d\t%s\tby the vendor (%s): %s\n", r.Number, r.Issued.Format(time.RFC3339), r.KeyID, visible.Line(r.Reason))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
