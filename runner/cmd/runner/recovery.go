package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// resealWait is how long reseal waits for a running agent.
const resealWait = 10 * time.Minute

func (s *settings) recoveryCommand() *cobra.Command {
	var out, replace string
	made := &cobra.Command{
		Use: "new", Short: "Make the recovery key of this install", Args: noArgs,
		Long: "Makes a key that opens everything of this install and lets another machine take this one's place. The key goes into a file (0600) " +
			"that you keep apart from this machine; the runner learns only its public half. An install that has a recovery key changes it with --replace, " +
			"which takes the file of the present one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			return newRecoveryKey(cmd.OutOrStdout(), dir, out, replace)
		},
	}
	made.Flags().StringVar(&out, "out", "berth-recovery.key", "where the key goes; must not exist")
	made.Flags().StringVar(&replace, "replace", "", "file of the present recovery key, which signs the new one")
	cmd := &cobra.Command{Use: "recovery", Short: "The key that opens and replaces this install", Args: noArgs}
	cmd.AddCommand(made, s.vouchCommand())
	return cmd
}

// vouchCommand is for a machine whose recovery key was made before it vouched for
// machines, or elsewhere.
func (s *settings) vouchCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "vouch", Short: "Let the recovery key sign that this machine is yours", Args: noArgs,
		Long: "Has the recovery key sign this machine's key, in trust.json; the runner writes it into its chain when it starts next. A machine that takes over " +
			"then knows which records of the chain yours wrote, and so which scripts you have accepted. `recovery new` and `replace` do this too.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("vouch needs --recovery FILE, the recovery key of the install")}
			}
			key, err := readKey(file)
			if err != nil {
				return err
			}
			dir, err := s.dir()
			if err != nil {
				return err
			}
			trust, err := dir.LoadTrust()
			if err != nil {
				return err
			}
			if trust.Recovery == nil || *trust.Recovery != key.Public() {
				return fmt.Errorf("%s holds the recovery key %s, which is not the one of this install", file, key.Public().KeyID)
			}
			if err := dir.SetRecovery(key, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "recovery key %s vouches for this machine; restart the runner\n", key.Public().KeyID)
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "recovery", "", "file of the recovery key")
	return cmd
}

func newRecoveryKey(w io.Writer, dir datadir.Dir, out, replace string) error {
	path, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(dir.Path(), path); err == nil && !strings.HasPrefix(inside, "..") {
		return usageError{fmt.Errorf("--out %s is in the data directory of the runner: losing that would lose the key, too", out)}
	}
	trust, err := dir.LoadTrust()
	if err != nil {
		return err
	}
	key, err := recovery.New()
	if err != nil {
		return err
	}
	if trust.Recovery != nil {
		if err := signChange(dir, *trust.Recovery, replace, key.Public()); err != nil {
			return err
		}
	}
	if err := writeKey(path, key); err != nil {
		return err
	}
	if err := dir.SetRecovery(key, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(w, "recovery key %s is in %s (0600)\n"+
		"  Move it to a place apart from this machine: with it and nothing else this install is opened and replaced.\n"+
		"  Then restart the runner, and let it seal everything to the new key too: berth-runner reseal --data %s\n",
		key.Public().KeyID, path, dir.Path())
	return nil
}

// signChange has the present recovery key sign the next.
func signChange(dir datadir.Dir, present recovery.Public, file string, next recovery.Public) error {
	if file == "" {
		return fmt.Errorf("this install has the recovery key %s: to change it, give its file with --replace", present.KeyID)
	}
	old, err := readKey(file)
	if err != nil {
		return err
	}
	if old.Public() != present {
		return fmt.Errorf("%s holds the recovery key %s, and this install has %s", file, old.Public().KeyID, present.KeyID)
	}
	runner, enrolled, err := dir.LoadRunner()
	if err != nil {
		return err
	}
	if !enrolled {
		return errors.New("the runner is not enrolled yet: start it first")
	}
	signed, err := old.SignChange(recovery.Change{OrgID: runner.OrgID, InstallID: runner.InstallID, Next: next, SignedAt: time.Now().UTC()})
	if err != nil {
		return err
	}
	return datadir.WriteJSON(dir.RecoveryChange(), signed)
}

// writeKey makes the file of a key; one that exists stays.
func writeKey(path string, key *recovery.Key) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("recovery key: %w", err)
	}
	_, err = f.WriteString(key.String() + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("recovery key: %w", err)
	}
	return nil
}

func readKey(path string) (*recovery.Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("recovery key: %w", err)
	}
	key, err := recovery.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func (s *settings) replaceCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "replace", Short: "Let this machine take the place of the install's machine", Args: noArgs,
		Long: "Run it once on the new machine, with an empty data directory and a code (or secret) that was made to replace the machine. " +
			"It signs the handover with the recovery key, enrols, takes over salt and chain, and seals states and outputs to this machine. " +
			"Then start the runner. If this is interrupted, run it again: it continues where it stopped.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("replace needs --recovery FILE, the recovery key of the install")}
			}
			key, err := readKey(file)
			if err != nil {
				return err
			}
			cfg, err := s.config()
			if err != nil {
				return err
			}
			done, err := agent.Replace(cmd.Context(), cfg, key)
			if done.Runner.RunnerID != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "this machine is %s of install %s now\n", done.Runner.RunnerID, done.Runner.InstallID)
			}
			if err != nil {
				return fmt.Errorf("the takeover is not complete, run it again: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "  the chain continues at record %d; states and outputs of %d resources were opened and sealed to this machine\n", done.Records, done.Resources)
			if !done.Last.IsZero() {
				fmt.Fprintf(cmd.OutOrStdout(), "  the last record of the previous machine is from %s: the control plane does not know what it wrote after that\n", done.Last.UTC().Format(time.RFC3339))
			}
			if done.NoScripts != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "  no script is accepted here, the next deploy asks: %s\n", visible.Line(done.NoScripts))
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "  scripts that stay accepted: %d (berth-runner scripts)\n", done.Scripts)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "recovery", "", "file of the recovery key")
	return cmd
}

func (s *settings) resealCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reseal", Short: "Seal states and outputs again, each for its purpose and to all recipients", Args: noArgs,
		Long: "Asks the agent of this data directory to seal again what the control plane keeps for this install: once after an update from a runner " +
			"whose sealed bytes did not name their purpose (afterwards those are refused), and after a new recovery key.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			wish := agent.ResealRequest{AskedAt: time.Now().UTC()}
			if err := datadir.WriteJSON(dir.Reseal(), wish); err != nil {
				return err
			}
			if !dir.Locked() {
				fmt.Fprintln(cmd.OutOrStdout(), "no agent is running; the next one seals everything again as soon as it is connected")
				return nil
			}
			return awaitReseal(cmd, dir, wish.AskedAt)
		},
	}
}

func awaitReseal(cmd *cobra.Command, dir datadir.Dir, asked time.Time) error {
	deadline := time.After(resealWait)
	for {
		var wish agent.ResealRequest
		if _, err := datadir.ReadJSON(dir.Reseal(), &wish); err != nil {
			return err
		}
		if wish.AskedAt.Equal(asked) && !wish.DoneAt.IsZero() {
			if wish.Error != "" {
				return fmt.Errorf("states and outputs of %d resources were sealed again, but not the others: %s", wish.Resources, wish.Error)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "states and outputs of %d resources were sealed again; the first form is refused from now on\n", wish.Resources)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-deadline:
			return errors.New("the agent has not done it yet: is it connected? see berth-runner status")
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}
