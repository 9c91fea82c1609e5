// Package plugins is `berth plugins`: what the author of a plugin does with its
// directory. What a plugin is, package pkg/plugin knows; how one is tried, package
// pkg/conformance.
package plugins

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/plugin"
)

// Doors is what the commands need of the rest of the command line.
type Doors struct {
	Args   cobra.PositionalArgs // DIR
	Packed cobra.PositionalArgs // DIR IMAGE
	Pushed cobra.PositionalArgs // DIR REGISTRY/REPOSITORY:TAG
	Getenv func(string) string
	Out    io.Writer
	Err    io.Writer
	Format func() (output.Options, error)
}

// Command is `berth plugins`. noun makes a command that only holds verbs.
func Command(noun func(plural, singular, short string, verbs ...*cobra.Command) *cobra.Command, d Doors) *cobra.Command {
	return noun("plugins", "plugin", "Component types of your own", create(d), pack(d), sign(d), test(d), push(d))
}

// test is `berth plugins test`.
func test(d Doors) *cobra.Command {
	var record, replay string
	cmd := &cobra.Command{
		Use: "test DIR", Short: "Try a plugin against every rule of the contract", Args: d.Args,
		Long: `Runs the plugin in DIR through the conformance kit, which all built-in engines pass
too: it is planned, applied, updated, replaced, destroyed, stopped and killed in the middle,
and started without its credential and its tools. DIR/conformance.json says with which
configs. The plugin runs as you, on this machine, without the isolation of a runner. Exits
with code 1 when a rule is broken.

--record OUT writes what this version makes of the same configs to a new directory, secrets
redacted: each change with what was there before and after, and what its plan and apply
left. --replay OUT has another version make these changes again, and names what differs:
run it before you ship an upgrade.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := d.Format()
			if err != nil {
				return err
			}
			if err := isPlugin(args[0]); err != nil {
				return err
			}
			switch {
			case record != "":
				return recordJobs(cmd.Context(), d, args[0], record)
			case replay != "":
				return replayJobs(cmd.Context(), d, args[0], replay)
			}
			subject, err := conformance.Plugin(args[0])
			if err != nil {
				return err
			}
			if subject.Close != nil {
				defer func() { _ = subject.Close() }() // temporary files
			}
			rows := []row{}
			var verdicts []conformance.Verdict
			for _, m := range conformance.Musts() {
				if cmd.Context().Err() != nil {
					return cmd.Context().Err()
				}
				v := subject.Try(cmd.Context(), m)
				verdicts = append(verdicts, v)
				rows = append(rows, row{Number: m.Number, ID: m.ID, Status: string(v.Status), TookMS: v.Took.Milliseconds(), Says: m.Says, Why: v.Why})
			}
			if err := output.List(d.Out, format, rows, view()); err != nil {
				return err
			}
			output.Printf(d.Err, "%s\n", conformance.Summary(subject.Name, verdicts))
			return broken(rows)
		},
	}
	cmd.Flags().StringVar(&record, "record", "", "record what the plugin does to this new directory")
	cmd.Flags().StringVar(&replay, "replay", "", "compare what the plugin does with the recording in this directory")
	cmd.MarkFlagsMutuallyExclusive("record", "replay")
	return cmd
}

// row is how one rule went.
type row struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Status string `json:"status"`
	TookMS int64  `json:"took_ms"`
	Says   string `json:"says"`
	Why    string `json:"why,omitempty"`
}

func view() output.View[row] {
	return output.View[row]{
		Name: func(r row) string { return r.ID },
		Columns: []output.Column[row]{
			{Head: "MUST", Cell: func(r row) string { return strconv.Itoa(r.Number) }},
			{Head: "RULE", Cell: func(r row) string { return r.ID }},
			{Head: "STATUS", Cell: func(r row) string { return r.Status }},
			{Head: "TOOK", Yields: true, Cell: func(r row) string { return (time.Duration(r.TookMS) * time.Millisecond).String() }},
			{Head: "WHY", Shrinks: true, Cell: func(r row) string { return output.OneLine(r.Why) }},
		},
	}
}

// broken is the error of a plugin that breaks rules; it tells each in full.
func broken(rows []row) error {
	var errs []error
	for _, r := range rows {
		if r.Status == string(conformance.Broken) {
			errs = append(errs, fmt.Errorf("rule %d, %s: %s (%s)", r.Number, r.ID, r.Why, r.Says))
		}
	}
	return errors.Join(errs...)
}

// keyMode is that of a file with a private key, keyDirMode that of a directory that is
// made for one.
const (
	keyMode    = 0o600
	keyDirMode = 0o700
)

// sign is `berth plugins sign`.
func sign(d Doors) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "sign DIR", Short: "Sign all files of a plugin", Args: d.Args,
		Long: `Writes DIR/plugin.sig.json, which names every file of the plugin by digest, signed with
the Ed25519 key in --key (PEM, PKCS #8). The command makes the key file, readable by you
alone, and its directory if they are not there. Prints the public key, which belongs into [berth.plugin] of the
components that use the plugin. Sign again after each change.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if key == "" {
				return usage.Errorf("berth plugins sign needs --key, the file of your signing key")
			}
			if err := isPlugin(args[0]); err != nil { // before a key is made for it
				return err
			}
			signer, err := signWith(d, args[0], key)
			if err != nil {
				return err
			}
			_, err = output.Println(d.Out, signer)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file of the signing key")
	return cmd
}

// signWith signs the plugin in a directory with the key in a file, which is made when it is
// not there, and returns the public key.
func signWith(d Doors, dir, key string) (signer string, err error) {
	if isInside(dir, key) {
		return "", usage.Errorf("the key is inside of the plugin's directory, and would be shipped with it")
	}
	private, err := readKey(key)
	if err != nil {
		return "", err
	}
	if private == nil {
		if private, err = makeKey(key); err != nil {
			return "", err
		}
		output.Printf(d.Err, "made a new key: %s\n", key)
	}
	envelope, err := plugin.Sign(private, os.DirFS(dir))
	if err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(envelope, "", "  ")
	if err != nil {
		return "", err
	}
	if err := durable.WriteFile(filepath.Join(dir, plugin.SignatureFile), append(raw, '\n'), 0o644); err != nil {
		return "", err
	}
	pub, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return "", errors.New("the key is not an Ed25519 key")
	}
	return capsule.EncodePublicKey(pub), nil
}

// isPlugin says what keeps a directory from being a plugin.
func isPlugin(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage.Errorf("there is no directory %s", dir)
	}
	if _, err := plugin.ReadManifest(os.DirFS(dir)); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

func isInside(dir, file string) bool {
	dir, errDir := filepath.Abs(dir)
	file, errFile := filepath.Abs(file)
	below, err := filepath.Rel(dir, file)
	return errors.Join(errDir, errFile, err) == nil && filepath.IsLocal(below)
}

// readKey reads a private key; nil when the file is not there.
func readKey(path string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := capsule.ParsePrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func makeKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := capsule.GenerateKey()
	if err != nil {
		return nil, err
	}
	raw, err := capsule.MarshalPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), keyDirMode); err != nil {
		return nil, err
	}
	return key, durable.WriteFile(path, raw, keyMode)
}
