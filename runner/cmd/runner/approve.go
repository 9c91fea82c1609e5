package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// How long an approval counts that does not say: of a change, and of the scheduled runs
// of a script.
const (
	approvalLife = 7 * 24 * time.Hour
	scriptLife   = 90 * 24 * time.Hour
)

// answering is an answer to changes, as the command line gives it.
type answering struct {
	signing
	answer    consent.Answer
	reason    string
	until     string
	yes       []string
	print     bool
	statement string
	signature string
}

func (a *answering) flags(cmd *cobra.Command) {
	a.signing.flags(cmd.Flags())
	cmd.Flags().StringVar(&a.reason, "reason", "", "why, for the record; the vendor sees it too")
	cmd.Flags().StringArrayVar(&a.yes, "yes", nil, "the effect digest of a change that you have looked at: sign it without asking; once for each change")
	cmd.Flags().BoolVar(&a.print, "print", false, "print what is to be signed, and sign nothing: to be signed on another machine")
	cmd.Flags().StringVar(&a.statement, "statement", "", "with --signature: the file that --print made")
	cmd.Flags().StringVar(&a.signature, "signature", "", "take a signature from another machine: of ssh-keygen -Y sign, or of berth-runner consent sign")
}

const elsewhere = `
To sign on another machine, print the statement, sign it there, and bring the signature back:
  berth-runner approve CHANGE --print > request.json
  ssh-keygen -Y sign -n consent@berth.dev -f KEY request.json      (or: berth-runner consent sign request.json --key FILE > answer.json)
  berth-runner approve --statement request.json --signature request.json.sig      (or: --signature answer.json)`

func (s *settings) approveCommand() *cobra.Command {
	a := answering{answer: consent.Approve}
	cmd := &cobra.Command{
		Use: "approve CHANGE…", Short: "Agree to a change",
		Long: `Shows a planned change, and signs the digest of its effect with your key: the runner brings about that
effect, once, and nothing else. It does not begin by itself; the vendor's side is told that you agreed.
Plans made again with the same effect need no new approval. Without holders in trust.json, the key of
this machine signs, and the record says so.
` + elsewhere,
		Example: "  berth-runner approve chg_01jd2x7q9zr8w3v5k6m4n0tgha --ssh-key ~/.ssh/id_ed25519_sk.pub --reason \"ticket 4711\"",
		RunE:    func(cmd *cobra.Command, args []string) error { return s.answer(cmd, args, a) },
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&a.until, "until", "", "until when it counts: 24h, or 2026-12-01T12:00:00Z (default: 7 days; 90 days for the scheduled runs of a script)")
	return cmd
}

func (s *settings) denyCommand() *cobra.Command {
	a := answering{answer: consent.Deny}
	cmd := &cobra.Command{
		Use: "deny CHANGE…", Short: "Refuse a change, or take an approval back",
		Long: "Signs that a change may not be brought about. One denial is enough, no matter who else agrees, before or after it; it can not be taken back. " +
			"The vendor can propose the same again as a new change. What has begun is not interrupted: berth-runner stop-now does that.",
		Example: "  berth-runner deny chg_01jd2x7q9zr8w3v5k6m4n0tgha --key ada.key --reason \"not before the audit\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.reason == "" && a.signature == "" {
				return usageError{errors.New("deny needs --reason: the vendor reads it")}
			}
			return s.answer(cmd, args, a)
		},
	}
	a.flags(cmd)
	return cmd
}

// answer does what the flags say.
func (s *settings) answer(cmd *cobra.Command, args []string, a answering) error {
	if len(a.reason) > consent.MaxReason {
		return usageError{fmt.Errorf("the reason is longer than %d bytes", consent.MaxReason)}
	}
	store, keys, err := s.consentStore()
	if err != nil {
		return err
	}
	if a.signature != "" {
		return takeSignature(cmd, store, a, args)
	}
	if len(args) == 0 {
		return usageError{errors.New("the id of a change is needed; berth-runner changes lists them")}
	}
	if a.print && len(args) > 1 {
		return usageError{errors.New("--print takes one change")}
	}
	sign, err := a.who(cmd.Context(), store, keys)
	if err != nil {
		return err
	}
	defer sign.end()
	for _, arg := range args {
		if err := sign.change(cmd, arg); err != nil {
			return err
		}
	}
	return nil
}

// answerer signs answers for one person.
type answerer struct {
	answering
	store  consents.Store
	signer consent.Signer
	by     string // of the machine's key: who uses it
	end    func()
}

// who finds the key that signs, and whose it is.
func (a answering) who(ctx context.Context, store consents.Store, keys datadir.Keys) (*answerer, error) {
	s := &answerer{answering: a, store: store, end: func() {}}
	if a.print {
		return s, nil
	}
	panel, err := store.Panel()
	if err != nil {
		return nil, err
	}
	if panel.ByMachine() && !a.given() {
		s.signer, s.by = consent.Ed25519Signer(keys.Sign), osUser()
		return s, nil
	}
	if s.signer, s.end, err = a.signing.signer(ctx); err != nil {
		return nil, err
	}
	if _, known := panel.Holder(s.signer.Key.ID); !known {
		s.end()
		return nil, fmt.Errorf("key %s is of no holder in %s: its signature would not count", s.signer.Key.ID, store.Dir.Trust())
	}
	return s, nil
}

// change answers one change.
func (s *answerer) change(cmd *cobra.Command, arg string) error {
	c, err := s.store.Find(arg)
	if err != nil {
		return err
	}
	whole, err := readWhole(s.store, c)
	if err != nil {
		return err
	}
	if err := s.sense(whole); err != nil {
		return err
	}
	until, err := s.ends(c)
	if err != nil {
		return err
	}
	statement := s.store.Statement(c, s.answer, s.reason, until)
	statement.By = s.by
	payload, err := statement.Bytes()
	if err != nil {
		return err
	}
	if s.print {
		_, err = cmd.OutOrStdout().Write(payload)
		return err
	}
	if !slices.Contains(s.yes, c.Effect) {
		if len(s.yes) > 0 {
			return fmt.Errorf("the effect of %s is %s, which is none that --yes names: look at it (berth-runner show %s)", c.ID, c.Effect, c.ID)
		}
		if err := printWhole(cmd.ErrOrStderr(), whole); err != nil {
			return err
		}
		if err := ask(cmd, fmt.Sprintf("\n%s this effect, signed by %s? Type yes: ", s.answer, s.signer.Key.ID), "--yes "+c.Effect); err != nil {
			return err
		}
	}
	if s.signer.Key.Hardware() {
		fmt.Fprintln(cmd.ErrOrStderr(), "touch the security key now")
	}
	env, err := s.signer.Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return keepAnswer(cmd, s.store, c, env)
}

// sense refuses answers that would do nothing.
func (s *answerer) sense(c wholeChange) error {
	switch state := c.State; {
	case state == stateApplied, state == stateReplaced:
		return fmt.Errorf("change %s is %s: there is nothing to answer any more", c.Change, state)
	case state == string(consent.Denied):
		return fmt.Errorf("change %s was denied by %s, which counts for good", c.Change, strings.Join(c.By, ", "))
	case s.answer == consent.Approve && state == stateNotAsked:
		return fmt.Errorf("change %s needs no consent: neither the mode in trust.json nor a guardrail asks for it", c.Change)
	case s.answer == consent.Approve && state == string(consent.Given):
		return fmt.Errorf("change %s needs no more consent: %s agreed", c.Change, strings.Join(c.By, ", "))
	}
	return nil
}

// ends is until when the answer counts.
func (s *answerer) ends(c consents.Change) (time.Time, error) {
	now := time.Now().UTC().Truncate(time.Second)
	if s.answer == consent.Deny {
		return time.Time{}, nil
	}
	if s.until == "" {
		if c.IsScript() {
			return now.Add(scriptLife), nil
		}
		return now.Add(approvalLife), nil
	}
	until, err := time.Parse(time.RFC3339, s.until)
	if err != nil {
		span, spanErr := time.ParseDuration(s.until)
		if spanErr != nil {
			return until, usageError{fmt.Errorf("--until %q is neither a time (2026-12-01T12:00:00Z) nor a span (24h)", s.until)}
		}
		until = now.Add(span)
	}
	if !until.After(now) || until.Sub(now) > consent.MaxLife {
		return until, usageError{fmt.Errorf("--until %q is not between now and %d days from now", s.until, consent.MaxLife/(24*time.Hour))}
	}
	return until.UTC(), nil
}

// ask waits for a yes on the terminal.
func ask(cmd *cobra.Command, question, instead string) error {
	if f, ok := cmd.InOrStdin().(*os.File); ok && !term.IsTerminal(int(f.Fd())) {
		return usageError{fmt.Errorf("nobody can answer here; after a look, give %s", instead)}
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was signed")
	}
	return nil
}

// keepAnswer keeps a signed answer and says how the change stands now.
func keepAnswer(cmd *cobra.Command, store consents.Store, c consents.Change, env capsule.Envelope) error {
	if err := store.Answer(env); err != nil {
		return err
	}
	view, err := store.Look()
	if err != nil {
		return err
	}
	stand := view.Stand(c)
	note := "the running agent tells the vendor at once"
	if !store.Dir.Locked() {
		note = "no agent is running; the next one tells the vendor"
	}
	text := string(stand.State)
	switch stand.State {
	case consent.Needed:
		text = fmt.Sprintf("signed, %d more to agree", stand.Still)
	case consent.Given:
		text = "agreed to by " + strings.Join(stand.By, ", ")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "change %s: %s (%s)\n", c.ID, text, note)
	return err
}

// takeSignature takes an answer that was signed on another machine.
func takeSignature(cmd *cobra.Command, store consents.Store, a answering, args []string) error {
	if len(args) > 0 {
		return usageError{errors.New("--signature takes no change: the statement names it")}
	}
	raw, err := os.ReadFile(a.signature)
	if err != nil {
		return err
	}
	panel, err := store.Panel()
	if err != nil {
		return err
	}
	var env capsule.Envelope
	if json.Unmarshal(raw, &env) != nil { // not what consent sign printed
		if a.statement == "" {
			return usageError{errors.New("a signature of ssh-keygen needs --statement FILE, what was signed")}
		}
		payload, err := os.ReadFile(a.statement)
		if err != nil {
			return err
		}
		if env, _, err = consent.Attach(panel.Keys(), consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload), raw); err != nil {
			return err
		}
	}
	_, payload, err := consent.Signers(panel.Keys(), consent.ForStatement, env)
	if err != nil {
		return err
	}
	statement, err := consent.ParseStatement(payload)
	if err != nil {
		return err
	}
	if statement.Answer != a.answer {
		return fmt.Errorf("the statement says %s: use berth-runner %s", statement.Answer, statement.Answer)
	}
	c, err := store.Find(statement.ChangeID)
	if err != nil {
		return err
	}
	if statement.Subject() != (consent.Subject{InstallID: store.InstallID, OriginID: c.OriginID, Effect: c.Effect}) {
		return fmt.Errorf("the statement is about effect %s of %s, and change %s is another", statement.Effect, statement.InstallID, c.ID)
	}
	return keepAnswer(cmd, store, c, env)
}
