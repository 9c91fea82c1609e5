package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/keyfile"
	"github.com/berth-dev/berth/pkg/offer"
)

// vendorKey says which key of the vendor's signs.
type vendorKey struct {
	file, ssh string
	getenv    func(string) string
}

// vendorKeyOf is the key that a command's flags name.
func (c *cli) vendorKeyOf(cmd *cobra.Command) *vendorKey {
	k := &vendorKey{getenv: c.Getenv}
	cmd.Flags().StringVar(&k.file, "key", "", "file of the private key that signs: of releases keygen, or an SSH key without a passphrase")
	cmd.Flags().StringVar(&k.ssh, "ssh-key", "", "file of the public half of an SSH key that ssh-agent has (SSH_AUTH_SOCK)")
	return k
}

// signer is the key; call end after use.
func (k *vendorKey) signer(ctx context.Context) (s consent.Signer, end func(), err error) {
	end = func() {}
	switch {
	case (k.file == "") == (k.ssh == ""):
		return s, end, errors.New("say which key signs: --key FILE, or --ssh-key PUBFILE for one that ssh-agent has")
	case k.file != "":
		s, err = keyfile.Read(k.file)
		return s, end, err
	}
	return keyfile.InAgent(ctx, k.ssh, k.getenv("SSH_AUTH_SOCK"))
}

// signed is what releases sign prints for programs.
type signed struct {
	Statement offer.Statement `json:"statement"`
	Digest    string          `json:"digest"`
}

func (c *cli) signReleaseCommand() *cobra.Command {
	var expires time.Duration
	var expect string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "sign RELEASE", Short: "Sign a release with the vendor's key", Args: command.Exactly("RELEASE"),
		Long: "Computes the manifest of a release from its contents, shows what it signs, signs it with the vendor's key, and stores the statement with the release. " +
			"Runners whose customer pinned the key take no release without it. Run it in your CI: the key never goes to the control plane. " +
			"With --expect, it signs only the manifest that you have looked at.",
		Example: "  berth releases sign hello@4 --key vendor.key\n  berth releases sign hello@4 --ssh-key ~/.ssh/id_ed25519.pub --expires 720h",
	}
	key := c.vendorKeyOf(cmd)
	cmd.Flags().DurationVar(&expires, "expires", offer.DefaultLife, "until when an install can accept the release for the first time")
	cmd.Flags().StringVar(&expect, "expect", "", "digest that the manifest must have")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be signed, and sign nothing")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		manifest, s, err := c.toSign(ctx, client, args[0])
		if err != nil {
			return err
		}
		if expect != "" && expect != s.Manifest {
			return fmt.Errorf("the manifest is %s, not %s as expected: nothing was signed", s.Manifest, expect)
		}
		s.Issued = c.Now().UTC().Truncate(time.Second)
		s.Expires = s.Issued.Add(expires)
		if err := c.showToSign(s, manifest); err != nil || dryRun {
			return err
		}
		by, end, err := key.signer(ctx)
		if err != nil {
			return err
		}
		defer end()
		env, err := offer.Sign(by, s)
		if err != nil {
			return err
		}
		body := ctlapi.AddReleaseStatementJSONRequestBody{PayloadType: env.PayloadType, Payload: env.Payload}
		if err := copyJSON(env.Signatures, &body.Signatures); err != nil {
			return err
		}
		resp, err := client.AddReleaseStatementWithResponse(ctx, s.ReleaseID, body)
		if err != nil {
			return err
		}
		if _, err := api.Body(resp.JSON201, resp.JSON200); err != nil {
			return err
		}
		if c.ForPrograms() {
			s.Type, s.KeyID = offer.StatementType, by.Key.ID
			return command.PrintOne(c.CLI, signed{Statement: s, Digest: env.PayloadDigest()}, output.View[signed]{})
		}
		_, err = output.Printf(c.Out, "signed by %s, good for a first acceptance until %s\n", by.Key.ID, s.Expires.Format(time.RFC3339))
		return err
	})
	return cmd
}

// toSign reads a release and computes what is to be signed of it. The digest is made here,
// of what runners will be given.
func (c *cli) toSign(ctx context.Context, client *api.Client, ref string) (jobspec.Manifest, offer.Statement, error) {
	var none offer.Statement
	resp, err := client.GetReleaseContentsWithResponse(ctx, ref)
	if err != nil {
		return jobspec.Manifest{}, none, err
	}
	contents, err := api.Body(resp.JSON200)
	if err != nil {
		return jobspec.Manifest{}, none, err
	}
	var release jobspec.Release
	if err := json.Unmarshal(contents.Release, &release); err != nil {
		return jobspec.Manifest{}, none, fmt.Errorf("contents of the release: %w", err)
	}
	app, number, numbered := strings.Cut(ref, "@")
	if numbered && (number != fmt.Sprint(release.Number) || app != contents.App.Name && app != contents.App.ID) {
		return jobspec.Manifest{}, none, fmt.Errorf("the control plane answered release %d of app %s for %s: nothing was signed", release.Number, contents.App.Name, ref)
	}
	manifest, err := release.Manifest()
	if err != nil {
		return manifest, none, err
	}
	digest, err := manifest.Digest()
	return manifest, offer.Statement{
		OrgID: contents.OrgID, AppID: contents.App.ID, App: contents.App.Name, ReleaseID: release.ID, Number: release.Number, Manifest: digest,
	}, err
}

func (c *cli) showToSign(s offer.Statement, m jobspec.Manifest) error {
	if c.ForPrograms() {
		return nil
	}
	_, err := output.Printf(c.Out, "release %d of app %s (%s, %s)\norg %s\nmanifest %s\n", s.Number, s.App, s.AppID, s.ReleaseID, s.OrgID, s.Manifest)
	for _, i := range m.Items {
		if err == nil {
			_, err = output.Printf(c.Out, "  %-8s  %-24s  %s\n", i.Kind, i.Name, i.Digest)
		}
	}
	return err
}

// showStatements says whether a release is signed.
func (c *cli) showStatements(list []ctlapi.ReleaseStatement) error {
	if len(list) == 0 {
		_, err := output.Printf(c.Out, "\nnot signed\n")
		return err
	}
	for _, s := range list {
		state := "until " + s.ExpiresAt.UTC().Format(time.RFC3339)
		switch {
		case !s.Matches:
			state = "FOR ANOTHER MANIFEST than the release has now"
		case !c.Now().Before(s.ExpiresAt):
			state = "expired at " + s.ExpiresAt.UTC().Format(time.RFC3339)
		}
		if _, err := output.Printf(c.Out, "\nsigned by %s, %s\n  stored by %s, %s ago\n", s.KeyID, state, s.AddedBy, c.Age(s.AddedAt)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) releaseKeygenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "keygen FILE", Short: "Make a key that signs your releases", Args: command.Exactly("FILE"),
		Long: "Makes an Ed25519 key: the private half goes into FILE (0600), which must not exist, and from there into your CI's secrets; the public half goes into FILE.pub, " +
			"which your customers pin. An SSH key that you have already does as well.",
		Example: "  berth releases keygen vendor.key",
		RunE: func(_ *cobra.Command, args []string) error {
			id, public, err := keyfile.New(args[0])
			if err != nil {
				return err
			}
			if err := os.WriteFile(args[0]+".pub", []byte(public+"\n"), 0o644); err != nil {
				return err
			}
			_, err = output.Printf(c.Out, "key %s\nprivate half: %s (keep it in your CI's secrets)\npublic half:  %s.pub (customers: berth-runner trust vendor-key add %s.pub --app APP_ID)\n", id, args[0], args[0], args[0])
			return err
		},
	}
}

func (c *cli) rotateReleaseKeyCommand() *cobra.Command {
	var next string
	cmd := &cobra.Command{
		Use: "rotate-key APP", Short: "Have the old key of your releases sign the new one", Args: command.Exactly("APP"),
		Long: "Prints a statement, signed by the old key, that another key signs the releases of an app from now on. Send it to your customers: each accepts it on the runner with " +
			"berth-runner trust vendor-key accept FILE. The app must have a release.",
		Example: "  berth releases rotate-key hello --key vendor.key --new-key next.key.pub > rotation.json",
	}
	key := c.vendorKeyOf(cmd)
	cmd.Flags().StringVar(&next, "new-key", "", "file of the new public key")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		text, err := os.ReadFile(next)
		if err != nil {
			return fmt.Errorf("--new-key: %w", err)
		}
		newKey, err := consent.ParseKey(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		releases, err := client.Releases(ctx, 1, args[0])
		if err != nil {
			return err
		}
		if len(releases) == 0 {
			return fmt.Errorf("app %s has no release yet", args[0])
		}
		_, s, err := c.toSign(ctx, client, releases[0].ID)
		if err != nil {
			return err
		}
		by, end, err := key.signer(ctx)
		if err != nil {
			return err
		}
		defer end()
		env, err := offer.SignRotation(by, offer.Rotation{
			OrgID: s.OrgID, AppID: s.AppID, NewKeyID: newKey.ID, NewKey: strings.TrimSpace(string(text)), Issued: c.Now().UTC().Truncate(time.Second),
		})
		if err != nil {
			return err
		}
		return printEnvelope(c, env)
	})
	return cmd
}

func printEnvelope(c *cli, env capsule.Envelope) error {
	raw, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return err
	}
	_, err = output.Printf(c.Out, "%s\n", raw)
	return err
}

// copyJSON turns a value into one of the same form.
func copyJSON(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}
