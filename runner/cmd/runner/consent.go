package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/consents"
)

func (s *settings) consentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "consent", Short: "Who has to agree to changes, and your standing rules", Args: noArgs,
		Long: "Whose consent changes of this install need is written in consent of trust.json, which only you write. Standing rules agree in your place to what you " +
			"described in them; they are a file that you sign.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	rules := &cobra.Command{Use: "rules", Short: "Your standing rules", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	rules.AddCommand(s.rulesShowCommand(), s.rulesCheckCommand(), s.rulesSignCommand(), s.rulesPutCommand())
	cmd.AddCommand(s.consentShowCommand(), signStatementCommand(), rules)
	return cmd
}

// shownConsent is who has to agree.
type shownConsent struct {
	Mode    consent.Mode  `json:"mode"`
	Need    int           `json:"need"`
	Holders []shownHolder `json:"holders"`
}

type shownHolder struct {
	Name     string   `json:"name"`
	Keys     []string `json:"keys"`
	Hardware bool     `json:"hardware"` // all of them are security keys
	Accounts []string `json:"accounts,omitempty"`
}

func (s *settings) consentShowCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "show", Short: "Show whose consent changes need", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, _, err := s.consentStore()
			if err != nil {
				return err
			}
			panel, err := store.Panel()
			if err != nil {
				return err
			}
			out := shownConsent{Mode: panel.Mode, Need: panel.Need}
			for _, seat := range panel.Holders {
				h := shownHolder{Name: seat.Name, Hardware: true, Accounts: seat.Accounts}
				for _, key := range seat.Keys {
					h.Keys, h.Hardware = append(h.Keys, key.ID), h.Hardware && key.Hardware()
				}
				out.Holders = append(out.Holders, h)
			}
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), out))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "mode %s: %s\n%d of %d holders have to agree\n\nHOLDER\tKEYS\tACCOUNTS AT THE VENDOR\n", out.Mode, modeText[out.Mode], out.Need, len(out.Holders))
			for _, h := range out.Holders {
				fmt.Fprintf(w, "%s\t%s\t%s\n", visible.Line(h.Name), strings.Join(h.Keys, ", "), or(visible.Line(strings.Join(h.Accounts, ", ")), "-"))
			}
			return w.Flush()
		},
	}
	how.flags(cmd)
	return cmd
}

var modeText = map[consent.Mode]string{
	consent.ModeVendor: "you are asked for what a guardrail asks for",
	consent.ModeRules:  "you are asked for what no standing rule covers",
	consent.ModeEach:   "you are asked for each change",
}

// signStatementCommand is for a machine that is not the runner's.
func signStatementCommand() *cobra.Command {
	var key signing
	var yes string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign a statement that approve --print made", Args: oneArg("the file that approve --print made"),
		Long: "Shows a statement and signs it, on a machine of yours that need not be the runner's. What it prints goes back: approve --signature FILE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			statement, err := consent.ParseStatement(payload)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			signer, end, err := key.signer(cmd.Context())
			if err != nil {
				return err
			}
			defer end()
			if yes != statement.Effect {
				text := fmt.Sprintf("%s\ninstall %s, change %s\neffect %s\n", statement.What, statement.InstallID, statement.ChangeID, statement.Effect)
				fmt.Fprint(cmd.ErrOrStderr(), text)
				if err := ask(cmd, fmt.Sprintf("\n%s this effect, signed by %s? Type yes: ", statement.Answer, signer.Key.ID), "--yes "+statement.Effect); err != nil {
					return err
				}
			}
			env, err := signer.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
			if err != nil {
				return fmt.Errorf("sign: %w", err)
			}
			return printJSON(cmd.OutOrStdout(), env)
		},
	}
	key.flags(cmd.Flags())
	cmd.Flags().StringVar(&yes, "yes", "", "the effect digest of the statement: sign it without asking")
	return cmd
}

// readRules reads a file of rules, signed or not.
func readRules(file string) (env capsule.Envelope, text []byte, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return env, nil, err
	}
	if !json.Valid(raw) { // not signed yet
		return consent.NewEnvelope(consent.ForRules, raw), raw, nil
	}
	if err = json.Unmarshal(raw, &env); err == nil {
		text, err = consents.RulesText(env)
	}
	return env, text, err
}

func (s *settings) rulesSignCommand() *cobra.Command {
	var key signing
	var yes, out string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign standing rules", Args: oneArg("a file of rules"),
		Long: "Shows a file of standing rules (TOML), or one that somebody has signed already, and adds your signature. It works on any machine of yours; " +
			"bring the signed file to the runner and put it there: berth-runner consent rules put.",
		Example: "  berth-runner consent rules sign rules.toml --key ada.key --out rules.signed.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			env, text, err := readRules(args[0])
			if err != nil {
				return err
			}
			rules, err := consent.ParseRules(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			signer, end, err := key.signer(cmd.Context())
			if err != nil {
				return err
			}
			defer end()
			if digest := env.PayloadDigest(); yes != digest {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s\n\nversion %d, digest %s\n", text, rules.Version, digest)
				if err := ask(cmd, fmt.Sprintf("Sign these rules by %s? Type yes: ", signer.Key.ID), "--yes "+digest); err != nil {
					return err
				}
			}
			if env, err = signer.Sign(consent.ForRules, env); err != nil {
				return fmt.Errorf("sign: %w", err)
			}
			raw, err := json.MarshalIndent(env, "", "  ")
			if err != nil {
				return err
			}
			if out == "" {
				out = strings.TrimSuffix(args[0], ".toml") + ".signed.json"
				if strings.HasSuffix(args[0], ".json") {
					out = args[0]
				}
			}
			if err := os.WriteFile(out, append(raw, '\n'), 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "version %d, digest %s, has %d signatures now: %s\n", rules.Version, env.PayloadDigest(), len(env.Signatures), out)
			return err
		},
	}
	key.flags(cmd.Flags())
	cmd.Flags().StringVar(&yes, "yes", "", "the digest of the rules: sign them without asking")
	cmd.Flags().StringVar(&out, "out", "", "where the signed file goes (default: NAME.signed.json, or the signed file itself)")
	return cmd
}

func (s *settings) rulesPutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "put FILE", Short: "Put signed standing rules in force", Args: oneArg("a signed file of rules"),
		Long: "Takes a signed file of rules in the place of the one before. As many holders have to have signed it as have to agree to a change, and its version " +
			"must be higher than any that was in force. The agent records it in the chain; from then on the rules count.",
		RunE: func(cmd *cobra.Command, args []string) error {
			store, _, err := s.consentStore()
			if err != nil {
				return err
			}
			env, _, err := readRules(args[0])
			if err != nil {
				return err
			}
			rules, err := store.PutRules(env)
			if err != nil {
				return err
			}
			note := "the running agent puts them in force at once"
			if !store.Dir.Locked() {
				note = "no agent is running; the next one puts them in force"
			}
			if panel, err := store.Panel(); err == nil && panel.Mode != consent.ModeRules {
				note += fmt.Sprintf("; but the mode in trust.json is %s, which does not look at rules", panel.Mode)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "standing rules version %d (%s)\n", rules.Version, note)
			return err
		},
	}
}

func (s *settings) rulesShowCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "show", Short: "Show the standing rules", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, _, err := s.consentStore()
			if err != nil {
				return err
			}
			env, found, err := store.SignedRules()
			if err != nil {
				return err
			}
			rules, problem, err := store.RulesInForce()
			if err != nil {
				return err
			}
			text, err := consents.RulesText(env)
			if err != nil {
				return err
			}
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), struct {
					InForce bool   `json:"in_force"`
					Problem string `json:"problem,omitempty"`
					Digest  string `json:"digest,omitempty"`
					Text    string `json:"text"`
				}{rules != nil, problem, env.PayloadDigest(), string(text)}))
			}
			switch {
			case !found:
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "there are no standing rules")
			case rules == nil:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n# NOT IN FORCE: %s\n", text, problem)
			default:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n# in force, digest %s\n", text, env.PayloadDigest())
			}
			return err
		},
	}
	how.flags(cmd)
	return cmd
}

func (s *settings) rulesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Try a file of standing rules on the changes that this runner knows", Args: oneArg("a file of rules"),
		Long: "Reads a file of rules, signed or not, and says what each of its rules would answer to the changes that this runner has planned, now. It changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, text, err := readRules(args[0])
			if err != nil {
				return err
			}
			rules, err := consent.ParseRules(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "version %d: %d rules, until %s\n", rules.Version, len(rules.Rules), timeOr(rules.Expires))
			if cfg, err := s.config(); err == nil && cfg.Data == "" { // a machine without a runner: the form is all there is to check
				return nil
			}
			d, err := s.desk()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, c := range d.changes {
				answer := d.view.Try(rules, c)
				fmt.Fprintf(w, "%s\t%s\t%s\n", c.ID, visible.Line(c.What()), visible.Line(answer))
			}
			return w.Flush()
		},
	}
}
