package fleet

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Capsule is `berth changes capsule`.
func Capsule(c *command.CLI) *cobra.Command {
	var raw bool
	var key string
	cmd := &cobra.Command{
		Use: "capsule CHANGE | INSTALL[/COMPONENT]", Short: "Show the signed order that carried a change out", Args: command.Exactly("CHANGE or INSTALL"),
		Long: `Shows the capsule of a change: the one-time order to bring about the effect that was approved,
signed with the org's dispatch key. A change that was not carried out has none.

With --key it is verified: that this key signed it, and that it is of this change. Give the key
that you pinned, not one that you just read from the control plane. --raw prints the envelope
byte for byte, for other tools.`,
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the signed envelope (DSSE), byte for byte")
	cmd.Flags().StringVar(&key, "key", "", "verify it with this public key, or the one in this file")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		trusted, err := publicKey(key)
		if err != nil {
			return err
		}
		id, err := names.Book{Client: client}.Change(ctx, args[0], false)
		if err != nil {
			return err
		}
		resp, err := client.GetCapsuleWithResponse(ctx, id)
		if err != nil {
			return err
		}
		got, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if trusted == nil {
			output.Println(c.Err, "not verified: give --key with the dispatch key that you pinned")
		} else if err := verify(*got, id, trusted); err != nil {
			return err
		} else {
			output.Printf(c.Err, "verified: signed with key %s\n", capsule.KeyID(trusted))
		}
		if raw {
			_, err := io.WriteString(c.Out, got.Envelope)
			return err
		}
		return command.PrintOne(c, *got, capsuleView())
	})
	return cmd
}

// publicKey reads --key: the key itself or a file with it; nil when it was not given.
func publicKey(given string) (ed25519.PublicKey, error) {
	if given == "" {
		return nil, nil
	}
	text, err := os.ReadFile(given)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(given), nil
	}
	if err != nil {
		return nil, err
	}
	key, err := capsule.ParsePublicKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, usage.Errorf("--key %s is no public key, and no file with one: %v", given, err)
	}
	return key, nil
}

// verify checks the signature, that the capsule is of this change, and that what is
// shown is what was signed.
func verify(got ctlapi.Capsule, change string, key ed25519.PublicKey) error {
	var envelope capsule.Envelope
	if err := json.Unmarshal([]byte(got.Envelope), &envelope); err != nil {
		return fmt.Errorf("the envelope of change %s is not JSON: %w", change, err)
	}
	var signed ctlapi.CapsuleOrder
	if _, err := capsule.Verify(map[string]ed25519.PublicKey{capsule.KeyID(key): key}, capsule.OrderType, envelope, &signed); err != nil {
		return fmt.Errorf("change %s: %w", change, err)
	}
	if signed.ChangeID != change {
		return fmt.Errorf("%w: the capsule was signed for change %s, not for %s", capsule.ErrSignature, signed.ChangeID, change)
	}
	if signed != got.Order {
		return fmt.Errorf("%w: what the control plane shows of change %s is not what was signed; see --raw", capsule.ErrSignature, change)
	}
	return nil
}

func capsuleView() output.View[ctlapi.Capsule] {
	of := func(head string, cell func(ctlapi.CapsuleOrder) string) output.Column[ctlapi.Capsule] {
		return output.Column[ctlapi.Capsule]{Head: head, Cell: func(c ctlapi.Capsule) string { return cell(c.Order) }}
	}
	return output.View[ctlapi.Capsule]{
		Name: func(c ctlapi.Capsule) string { return c.PayloadDigest },
		Columns: []output.Column[ctlapi.Capsule]{
			{Head: "CHANGE", Cell: func(c ctlapi.Capsule) string { return c.ChangeID }},
			{Head: "CAPSULE", Cell: func(c ctlapi.Capsule) string { return c.PayloadDigest }},
			{Head: "SIGNED BY", Cell: func(c ctlapi.Capsule) string { return strings.Join(c.KeyIds, " ") }},
			of("DOES", func(o ctlapi.CapsuleOrder) string { return o.Operation + " " + o.Kind }),
			of("RESOURCE", func(o ctlapi.CapsuleOrder) string { return o.ResourceID }),
			of("INSTALL", func(o ctlapi.CapsuleOrder) string { return o.InstallID }),
			of("RELEASE", func(o ctlapi.CapsuleOrder) string { return o.ReleaseID }),
			of("EFFECT", func(o ctlapi.CapsuleOrder) string { return o.EffectDigest }),
			of("PLAN", func(o ctlapi.CapsuleOrder) string { return o.PlanBytesDigest }),
			of("SPEC", func(o ctlapi.CapsuleOrder) string { return o.SpecDigest }),
			of("FENCE", func(o ctlapi.CapsuleOrder) string { return fmt.Sprint(o.Fence) }),
			of("RUNNER", func(o ctlapi.CapsuleOrder) string { return o.RunnerID }),
			of("MACHINE", func(o ctlapi.CapsuleOrder) string { return o.MachineKeyID }),
			of("JOB", func(o ctlapi.CapsuleOrder) string { return o.JobID }),
			of("ISSUED", func(o ctlapi.CapsuleOrder) string { return o.IssuedAt.UTC().Format(time.RFC3339) }),
			of("EXPIRES", func(o ctlapi.CapsuleOrder) string { return o.ExpiresAt.UTC().Format(time.RFC3339) }),
			of("BY", func(o ctlapi.CapsuleOrder) string { return o.Actor }),
			of("NONCE", func(o ctlapi.CapsuleOrder) string { return o.Nonce }),
		},
	}
}
