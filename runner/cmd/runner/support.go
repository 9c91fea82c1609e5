package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/disclosure"
	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/secretstore"
	"github.com/berth-dev/berth/runner/review"
)

const (
	// maxSupportLog is how much of a log goes into a bundle, in bytes from its end.
	maxSupportLog = 1 << 20
	// recordWait is how long release waits for the agent to record it.
	recordWait = 15 * time.Second
)

func (s *settings) supportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "support", Short: "Output for support, which leaves only as you saw and released it", Args: noArgs,
		Long: "collect makes a bundle on this machine, show prints exactly its bytes, release signs these bytes and writes them and the signature to files that you hand over. " +
			"Nothing is sent by itself.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.supportCollectCommand(), s.supportShowCommand(), s.supportReleaseCommand())
	return cmd
}

func (s *settings) supportCollectCommand() *cobra.Command {
	var logFile string
	cmd := &cobra.Command{
		Use: "collect", Short: "Make a redacted bundle on this machine", Args: noArgs,
		Example: "  journalctl -u berth-runner --since -1d > agent.log && berth-runner support collect --log agent.log",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, runner, err := s.installDir("a bundle")
			if err != nil {
				return err
			}
			text, err := supportText(dir, s.cfg.MinFree, logFile)
			if err != nil {
				return err
			}
			hide, err := knownSecrets(dir, runner)
			if err != nil {
				return err
			}
			text = withoutSecrets(text, hide)
			name := "support-" + time.Now().UTC().Format("20060102T150405.000Z") + ".txt"
			if err := datadir.Write(filepath.Join(dir.Support(), name), text); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%d bytes, %s\nlook at it: berth-runner support show %s\n", name, len(text), capsule.DigestBytes(text), name)
			return nil
		},
	}
	cmd.Flags().StringVar(&logFile, "log", "", "a file with the agent's log; its last 1 MiB goes into the bundle")
	return cmd
}

// supportText is how the runner stands.
func supportText(dir datadir.Dir, minFree int64, logFile string) ([]byte, error) {
	var out bytes.Buffer
	section := func(name string, v any) error {
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "== %s ==\n%s\n\n", name, raw)
		return nil
	}
	st, err := look(dir, minFree)
	if err != nil {
		return nil, err
	}
	facts, err := reviewFacts(dir, minFree)
	if err != nil {
		return nil, err
	}
	// The facts have the names of people and hosts that support needs not.
	facts.Holders, facts.Roles, facts.RolesOn = nil, nil, nil
	classes, err := egressClasses(dir)
	if err != nil {
		return nil, err
	}
	parts := []struct {
		name  string
		value any
	}{{"status", st}, {"facts", struct{ review.Facts }{facts}}, {"egress", classes}}
	for _, part := range parts {
		if err := section(part.name, part.value); err != nil {
			return nil, err
		}
	}
	if logFile == "" {
		return out.Bytes(), nil
	}
	log, err := os.Open(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil && info.Size() > maxSupportLog {
		if _, err := log.Seek(-maxSupportLog, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	fmt.Fprint(&out, "== log ==\n")
	_, err = io.Copy(&out, io.LimitReader(log, maxSupportLog))
	return out.Bytes(), err
}

// knownSecrets are all that this runner has.
func knownSecrets(dir datadir.Dir, runner datadir.Runner) (*redact.Set, error) {
	set := redact.New()
	files, err := filepath.Glob(filepath.Join(dir.Path(), "secrets", "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"identity", "seal-identity", "salt"} {
		files = append(files, filepath.Join(dir.Path(), name))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		set.Add(bytes.TrimSpace(text), "key of the runner")
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "-----") {
				set.Add([]byte(line), "key of the runner")
			}
		}
	}
	keys, err := dir.Keys()
	if err != nil {
		return nil, err
	}
	store := secretstore.Store{Dir: dir.CustomerSecrets(), Runner: runner, Keys: keys, Now: time.Now}
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		if !v.Set {
			continue
		}
		kept, err := store.Get(v.Name)
		if err != nil {
			return nil, err
		}
		value, err := store.Open(kept)
		if err != nil {
			return nil, err
		}
		set.Add([]byte(value), "secret "+v.Name)
	}
	return set, nil
}

// credentials are what secrets of others look like that no runner knows: names and
// passwords in addresses, tokens in headers.
var credentials = []*regexp.Regexp{
	regexp.MustCompile(`(://)[^/\s:@"]+:[^/\s@"]+@`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}`),
}

// withoutSecrets redacts a text and makes it one that a terminal shows as it is.
func withoutSecrets(text []byte, hide *redact.Set) []byte {
	text = hide.Bytes(text)
	for _, pattern := range credentials {
		text = pattern.ReplaceAll(text, []byte("${1}(redacted)"))
	}
	var shown bytes.Buffer
	w := visible.NewWriter(&shown)
	_, _ = w.Write(text) // a buffer takes all
	_ = w.Flush()
	return shown.Bytes()
}

// bundle reads one by its name.
func bundle(dir datadir.Dir, name string) (path string, text []byte, err error) {
	if filepath.Base(name) != name || !strings.HasSuffix(name, ".txt") {
		return "", nil, usageError{fmt.Errorf("%q is not the name of a bundle; support collect printed it", name)}
	}
	path = filepath.Join(dir.Support(), name)
	text, err = os.ReadFile(path)
	return path, text, err
}

func (s *settings) supportShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Print exactly the bytes of a bundle", Args: oneArg("the name of a bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			_, text, err := bundle(dir, args[0])
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(text); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d bytes, %s\nrelease it: berth-runner support release %s --recipient WHO --yes %s\n", len(text), capsule.DigestBytes(text), args[0], capsule.DigestBytes(text))
			return nil
		},
	}
}

// releasing is what somebody says who releases a bundle.
type releasing struct {
	signing
	recipient, reason, out, yes string
	span                        time.Duration
}

func (s *settings) supportReleaseCommand() *cobra.Command {
	var r releasing
	cmd := &cobra.Command{
		Use: "release NAME", Short: "Sign the bytes of a bundle and write what you hand over", Args: oneArg("the name of a bundle"),
		Long: "Signs the digest of the bytes that support show printed, with a key of a consent holder (without holders: this machine's). The running agent puts that into the install's chain; then " +
			"bundle and signature are written to --out. Hand over both; berth-verify disclosure checks them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.recipient == "" || r.yes == "" || r.out == "" {
				return usageError{errors.New("needed are --recipient, --out, and --yes with the digest that support show printed")}
			}
			return s.releaseBundle(cmd, args[0], r)
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().StringVar(&r.recipient, "recipient", "", "who may have it")
	cmd.Flags().StringVar(&r.reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&r.out, "out", "", "directory for the two files")
	cmd.Flags().StringVar(&r.yes, "yes", "", "the digest of the bytes that you looked at")
	cmd.Flags().DurationVar(&r.span, "for", 30*24*time.Hour, "how long the recipient may keep it")
	return cmd
}

func (s *settings) releaseBundle(cmd *cobra.Command, name string, r releasing) error {
	store, keys, err := s.consentStore()
	if err != nil {
		return err
	}
	runner, _, err := store.Dir.LoadRunner()
	if err != nil {
		return err
	}
	path, text, err := bundle(store.Dir, name)
	if err != nil {
		return err
	}
	digest := capsule.DigestBytes(text)
	switch {
	case r.yes != digest:
		return fmt.Errorf("the bytes of %s are %s, and you name %s: look at them again (berth-runner support show %s)", name, digest, r.yes, name)
	case !store.Dir.Locked():
		return errors.New("no agent is running: a release becomes a record of the chain before anything leaves, so start the agent first")
	}
	who, err := answering{signing: r.signing}.who(cmd.Context(), store, keys)
	if err != nil {
		return err
	}
	defer who.end()
	now := time.Now().UTC().Truncate(time.Second)
	payload, err := json.Marshal(disclosure.Statement{
		Type: disclosure.Type, InstallID: runner.InstallID, RunnerID: runner.RunnerID, Bundle: name, Digest: digest, Size: int64(len(text)),
		Recipient: r.recipient, Until: now.Add(r.span), Reason: r.reason, By: who.by, At: now,
	})
	if err != nil {
		return err
	}
	if _, err := disclosure.Parse(payload); err != nil {
		return usageError{err}
	}
	env, err := who.signer.Sign(disclosure.Purpose, consent.NewEnvelope(disclosure.Purpose, payload))
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	for _, before := range []string{agent.RecordedSuffix, agent.RefusedSuffix} {
		if err := datadir.Remove(path + before); err != nil {
			return err
		}
	}
	if err := datadir.WriteJSON(path+agent.ReleasedSuffix, env); err != nil {
		return err
	}
	if err := awaitRecord(cmd, path); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o700); err != nil {
		return err
	}
	if err := datadir.Write(filepath.Join(r.out, name), text); err != nil {
		return err
	}
	if err := datadir.WriteJSON(filepath.Join(r.out, name+agent.ReleasedSuffix), env); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "released to %s: hand over %s and %s from %s\n", r.recipient, name, name+agent.ReleasedSuffix, r.out)
	return nil
}

// awaitRecord waits until the agent has put the release into the chain.
func awaitRecord(cmd *cobra.Command, path string) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	end := time.After(recordWait)
	for {
		var why string
		if refused, err := datadir.ReadJSON(path+agent.RefusedSuffix, &why); err != nil || refused {
			return errors.Join(err, errors.New("the agent does not accept the release: "+why))
		}
		if _, err := os.Lstat(path + agent.RecordedSuffix); err == nil {
			return nil
		}
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-end:
			return errors.New("the agent has not recorded the release, so nothing was written; see its log, and try again")
		case <-look.C:
		}
	}
}
