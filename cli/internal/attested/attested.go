// Package attested is `berth builds provenance` and `berth builds sbom`: what hangs on the
// artifact of a build, fetched from the org's registry and verified. What it is, package
// pkg/attest knows.
package attested

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/oci"
)

// Doors is what the commands need of the rest of the command line.
type Doors struct {
	// Call runs a command with a client of the chosen context.
	Call func(func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error
	Args cobra.PositionalArgs // BUILD
	Out  io.Writer
	Err  io.Writer
}

// Commands are the two verbs of builds.
func Commands(d Doors) []*cobra.Command {
	return []*cobra.Command{
		verb(d, "provenance BUILD", "Print where the artifact of a build comes from", attest.SLSA,
			`Prints the SLSA provenance (v1) of what a build made: source, modules that were fetched, builder
and times.`),
		verb(d, "sbom BUILD", "Print what the artifact of a build contains", attest.SPDX,
			`Prints the SBOM of what a build made, as SPDX 2.3: modules and providers, charts in a chart,
images that charts and manifests name, packages of an image. An image for several platforms has
one for each: --subject chooses.`),
	}
}

const how = ` It is fetched from the org's registry, and printed once
the signature of the machine that built is verified. --bundle prints it with that signature, as a
bundle of sigstore, for other tools; it hangs on the artifact as a referrer as well, and comes
along to the registry of each install.`

func verb(d Doors, use, short, predicate, long string) *cobra.Command {
	var subject string
	var bundle bool
	word, _, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Long: long + how, Args: d.Args, Example: fmt.Sprintf("  berth builds %[1]s bld_01jd2x7q9zr8w3v5k6m4n0tgha\n  berth builds %[1]s bld_01jd2x7q9zr8w3v5k6m4n0tgha --bundle > %[1]s.json", word)}
	cmd.Flags().StringVar(&subject, "subject", "", "of which manifest: the artifact's digest, or that of one platform")
	cmd.Flags().BoolVar(&bundle, "bundle", false, "print it with its signature, as a bundle of sigstore")
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetBuildWithResponse(ctx, args[0], &ctlapi.GetBuildParams{})
		if err != nil {
			return err
		}
		build, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		one, err := Choose(*build, predicate, subject)
		if err != nil {
			return err
		}
		from, err := registry(ctx, client, *build)
		if err != nil {
			return err
		}
		raw, statement, err := Fetch(ctx, from, one, build.AttestedBy)
		if err != nil {
			return err
		}
		output.Printf(d.Err, "signed by the machine that built, key %s; about %s\n", build.AttestedBy, one.Subject)
		if !bundle {
			raw = statement.Predicate
		}
		return output.Program(d.Out, output.Options{Format: output.JSON}, json.RawMessage(raw))
	})
	return cmd
}

// Choose finds the attestation that is asked for.
func Choose(build ctlapi.Build, predicate, subject string) (ctlapi.Attestation, error) {
	var found []ctlapi.Attestation
	var subjects []string
	for _, a := range build.Attestations {
		if a.PredicateType == predicate && (subject == "" || a.Subject == subject) {
			found = append(found, a)
			subjects = append(subjects, a.Subject)
		}
	}
	switch {
	case build.Artifact == nil:
		return ctlapi.Attestation{}, fmt.Errorf("build %s has made nothing yet: it is %s", build.ID, build.State)
	case len(build.Attestations) == 0:
		return ctlapi.Attestation{}, fmt.Errorf("nothing hangs on the artifact of build %s: an image of somebody else's was copied with what its maker said of it, or the Build Runner was older than this; build it again", build.ID)
	case len(found) == 0:
		return ctlapi.Attestation{}, fmt.Errorf("build %s has none of type %s about that", build.ID, predicate)
	case len(found) > 1:
		return ctlapi.Attestation{}, usage.Errorf("there is one for each platform: choose with --subject, of %s", strings.Join(subjects, ", "))
	}
	return found[0], nil
}

func registry(ctx context.Context, client *api.Client, build ctlapi.Build) (oci.Remote, error) {
	minutes := 5
	resp, err := client.CreateRegistryTokenWithResponse(ctx, &ctlapi.CreateRegistryTokenParams{},
		ctlapi.RegistryTokenRequest{App: api.Optional(build.App.ID), Minutes: &minutes})
	if err != nil {
		return oci.Remote{}, err
	}
	token, err := api.Body(resp.JSON201)
	if err != nil {
		return oci.Remote{}, err
	}
	return oci.Remote{
		Registry: token.Host, Repository: build.Artifact.Repository, PlainHTTP: token.PlainHTTP,
		Login: func(context.Context) (oci.Login, error) {
			return oci.Login{Username: token.Username, Password: token.Secret}, nil
		},
	}, nil
}

// Fetch reads an attestation and verifies it: by its digest, the key of the machine, and
// that it is about its subject.
func Fetch(ctx context.Context, from oci.Remote, one ctlapi.Attestation, signedBy string) (bundle []byte, s attest.Statement, err error) {
	key, err := capsule.ParsePublicKey(signedBy)
	if err != nil {
		return nil, s, fmt.Errorf("key of the machine that built: %w", err)
	}
	dgst, err := digest.Parse(one.Digest)
	if err != nil {
		return nil, s, err
	}
	said, err := from.ReadReferrer(ctx, dgst, 2*attest.MaxBytes)
	if err != nil {
		return nil, s, fmt.Errorf("fetch %s of %s: %w", one.Digest, from, err)
	}
	if s, _, err = attest.Open(said.Data, key); err != nil {
		return nil, s, fmt.Errorf("%s of %s: %w", one.Digest, from, err)
	}
	if said.Subject.String() != one.Subject || !s.Names(said.Subject) || s.PredicateType != one.PredicateType {
		return nil, s, fmt.Errorf("%s of %s is about something else than the build says", one.Digest, from)
	}
	return said.Data, s, nil
}
