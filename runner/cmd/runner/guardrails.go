package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/judge"
	"github.com/berth-dev/berth/runner/agent/order"
)

// guardrailsCommand is about the customer's rules.
func (s *settings) guardrailsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "guardrails", Short: "Show, try, loosen and tighten your rules for what the vendor changes", Args: noArgs,
		Long: `Guardrails are rules that this runner holds against every plan, whatever the vendor orders: allow, warn,
ask (you have to agree) or deny. A set of them ships with the runner. Your own are files in the folder
guardrails/ of the data directory: Kyverno's ValidatingPolicy and ClusterPolicy (.yaml), Rego (.rego).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.guardrailsListCommand(), s.guardrailsTestCommand(), s.guardrailsExplainCommand(), s.guardrailsSetCommand(),
		s.guardrailsUnsetCommand(), s.allowDeprovisionCommand(), s.forbidDeprovisionCommand())
	return cmd
}

// guards are those of the data directory, with the engine if asking is needed.
func (s *settings) guards() (*guards.Guards, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	var told agent.Status
	if _, err := datadir.ReadJSON(dir.Status(), &told); err != nil {
		told = agent.Status{} // the agent writes it again
	}
	return &guards.Guards{
		Folder: guards.Folder{Dir: dir}, Registry: cfg.RegistryAddress, Development: told.Trust == "development",
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, nil
}

// shownGuardrail is a line of the list.
type shownGuardrail struct {
	Name   string        `json:"name"`
	Answer policy.Answer `json:"answer"` // "" where the file itself says it
	From   string        `json:"from"`
	Since  time.Time     `json:"since,omitzero"`
	Says   string        `json:"says,omitempty"`
	// Changed is the customer's answer that counts instead of the standard one.
	Changed []guardrail.Answer `json:"changed,omitempty"`
}

// shownGuardrails is the list and how it stands.
type shownGuardrails struct {
	Guardrails []shownGuardrail `json:"guardrails"`
	Problems   []string         `json:"problems"`
	OnlyWarn   bool             `json:"only_warn"`
	// Development: nothing keeps engines apart from this runner, so guardrails only warn.
	Development bool            `json:"development"`
	Agreed      []guards.Agreed `json:"agreed"`
	Deprovision *guards.Permit  `json:"deprovision,omitempty"`
}

func showGuardrails(g *guards.Guards) (shownGuardrails, error) {
	set := g.Set()
	state := guards.StateOf(set, nil, g.Now())
	shown := shownGuardrails{Guardrails: []shownGuardrail{}, Problems: state.Problems, OnlyWarn: set.OnlyWarn, Development: set.Development, Agreed: []guards.Agreed{}}
	line := func(name string) shownGuardrail {
		one := shownGuardrail{Name: name}
		for _, a := range set.Answers {
			if a.Guardrail == name {
				one.Changed = append(one.Changed, a)
			}
		}
		return one
	}
	for _, standard := range guardrail.Standards {
		one := line(standard.Name)
		one.From, one.Says = "berth-runner", standard.Says
		one.Answer = set.Answer(guardrail.Rule{Rules: policy.Rules{Name: standard.Name}, Standard: &standard}, "")
		shown.Guardrails = append(shown.Guardrails, one)
	}
	for _, r := range set.Rules {
		if r.Standard == nil {
			one := line(r.Name)
			one.Answer, one.From, one.Since = set.Answer(r, ""), r.File, r.Since
			shown.Guardrails = append(shown.Guardrails, one)
		}
	}
	agreed, err := g.Agreed()
	if err != nil {
		return shown, err
	}
	shown.Agreed = append(shown.Agreed, agreed...)
	permit, _, err := g.Permits("", g.Now())
	if err == nil && g.Now().Before(permit.Until) {
		shown.Deprovision = &permit
	}
	return shown, err
}

func (s *settings) guardrailsListCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "list", Short: "List the guardrails, what each means, and where it comes from", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := s.guards()
			if err != nil {
				return err
			}
			shown, err := showGuardrails(g)
			if err != nil {
				return err
			}
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), shown))
			}
			return shown.print(cmd.OutOrStdout())
		},
	}
	how.flags(cmd)
	return cmd
}

func (s shownGuardrails) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tANSWER\tFROM\tSINCE\tABOUT")
	for _, g := range s.Guardrails {
		about := g.Says
		for _, a := range g.Changed {
			about += fmt.Sprintf(" [%s%s%s: %s]", a.Answer, ofComponents(a.Components), until(a.Until), a.Reason)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", visible.Line(g.Name), or(string(g.Answer), "as it says"), visible.Line(g.From), timeOr(g.Since), visible.Line(strings.TrimSpace(about)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, a := range s.Agreed {
		fmt.Fprintf(to, "agreed: %s for %s, by change %s\n", visible.Line(a.Guardrail), visible.Line(a.Kind.Kind), a.Change)
	}
	if p := s.Deprovision; p != nil {
		fmt.Fprintf(to, "teardowns may remove what holds data%s%s: %s\n", ofComponents(p.Components), until(p.Until), visible.Line(p.Reason))
	}
	switch {
	case s.Development:
		fmt.Fprintln(to, "they only warn: trust is development, so nothing keeps the vendor's code from these rules")
	case s.OnlyWarn:
		fmt.Fprintln(to, "they only warn: guardrails/"+guardrail.AnswersFile+" says only_warn")
	}
	for _, p := range s.Problems {
		fmt.Fprintln(to, "IN DOUBT, so that everything asks: "+visible.Line(p))
	}
	return nil
}

func ofComponents(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " of " + strings.Join(list, ", ")
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format(time.RFC3339)
}

// judgeNobody is who the policy engine runs as where the command line is root's.
const judgeNobody = 65534

func (s *settings) guardrailsTestCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "test FILE|DIR...", Short: "Hold the guardrails against manifests, Terraform plans or documents in files",
		Long: `Reads manifests with objects (as if each of them was made), plans (terraform show -json), and documents as
a plan leaves them, and says what the guardrails would answer. Nothing is sent anywhere. It fails when the
answer is deny, or a guardrail is in doubt.`,
		Example: "  helm template web ./chart | berth-runner guardrails test /dev/stdin\n  terraform show -json plan > plan.json && berth-runner guardrails test plan.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asJSON, err := how.json()
			if err != nil {
				return err
			}
			g, err := s.guards()
			if err != nil {
				return err
			}
			var documents []policy.Document
			for _, path := range args {
				found, err := guardrail.ReadDocuments(path)
				if err != nil {
					return err
				}
				documents = append(documents, found...)
			}
			end, err := s.openJudge(g)
			if err != nil {
				return err
			}
			defer end()
			return testGuardrails(cmd, g, documents, asJSON)
		},
	}
	how.flags(cmd)
	return cmd
}

// openJudge gives guards a policy engine.
func (s *settings) openJudge(g *guards.Guards) (end func(), err error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.Complete(); err != nil {
		return nil, err
	}
	engine := judge.New(judge.Options{Executable: filepath.Join(filepath.Dir(cfg.Engine), "berth-policy"), Launcher: cfg.Executable, UID: judgeNobody})
	g.Engine = engine
	return engine.Close, nil
}

func testGuardrails(cmd *cobra.Command, g *guards.Guards, documents []policy.Document, asJSON bool) error {
	judged := append(slices.Clone(documents), guardrail.FootprintOf(documents))
	got := g.Judge(context.WithoutCancel(cmd.Context()), guards.Plan{Case: policy.Case{Documents: judged}, Guarded: true}).Judgement
	if asJSON {
		if err := printJSON(cmd.OutOrStdout(), got); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "%d documents: %s\n", len(documents), got.Answer)
		for _, v := range policy.Against(got.Guardrails, policy.Ask) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", v.Answer(policy.Ask), visible.Line(v.String()))
		}
	}
	inDoubt := slices.ContainsFunc(got.Guardrails, func(v policy.Verdict) bool { return v.Result == policy.Error || v.Result == policy.Unknown })
	switch {
	case got.Answer == policy.Deny:
		return errors.New("guardrails deny this")
	case inDoubt:
		return errors.New("a guardrail is in doubt")
	}
	return nil
}

// explained is what there is to say of a planned change.
type explained struct {
	Change    string            `json:"change_id"`
	Planned   time.Time         `json:"planned_at"`
	Effect    string            `json:"effect_digest"`
	Judgement *policy.Judgement `json:"judgement"`
	Rules     []explainedRule   `json:"rules"`
}

// explainedRule is a guardrail that stands against the change.
type explainedRule struct {
	Name     string           `json:"name"`
	Answer   policy.Answer    `json:"answer"`
	File     string           `json:"file,omitempty"`
	Text     string           `json:"text,omitempty"`
	Verdicts []policy.Verdict `json:"verdicts"`
	// Loosen is the command that does.
	Loosen string `json:"loosen,omitempty"`
}

func (s *settings) guardrailsExplainCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "explain CHANGE", Short: "Show what the guardrails say of a planned change, why, and how to loosen them",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !id.Valid(id.Change, args[0]) {
				return usageError{errors.New("the id of one change is needed: chg_…")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := s.guards()
			if err != nil {
				return err
			}
			var record order.Record
			found, err := datadir.ReadJSON(g.Dir.Plan(args[0]), &record)
			if err == nil && !found {
				err = fmt.Errorf("this runner has no plan of change %s: it was planned elsewhere, or long ago", args[0])
			}
			if err != nil {
				return err
			}
			e := explain(record, g.Set())
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), e))
			}
			e.print(cmd.OutOrStdout())
			return nil
		},
	}
	how.flags(cmd)
	return cmd
}

func explain(record order.Record, set guardrail.Set) explained {
	e := explained{Change: record.ChangeID, Planned: record.PlannedAt, Effect: record.EffectDigest, Judgement: record.Judgement, Rules: []explainedRule{}}
	if record.Judgement == nil {
		return e
	}
	for _, v := range policy.Against(record.Judgement.Guardrails, policy.Ask) {
		at := slices.IndexFunc(e.Rules, func(r explainedRule) bool { return r.Name == v.Policy })
		if at < 0 {
			r := explainedRule{Name: v.Policy, Answer: v.Answer(policy.Ask)}
			for _, known := range set.Rules {
				if known.Name == v.Policy {
					r.File, r.Text = known.File, known.Text
					r.Loosen = fmt.Sprintf("berth-runner guardrails set %s --answer warn --for 24h --reason \"…\"", v.Policy)
				}
			}
			at, e.Rules = len(e.Rules), append(e.Rules, r)
		}
		e.Rules[at].Verdicts = append(e.Rules[at].Verdicts, v)
	}
	return e
}

func (e explained) print(to io.Writer) {
	answer := policy.Allow
	if e.Judgement != nil {
		answer = e.Judgement.Answer
	}
	fmt.Fprintf(to, "change %s, planned %s: %s\n", e.Change, e.Planned.UTC().Format(time.RFC3339), answer)
	for _, r := range e.Rules {
		fmt.Fprintf(to, "\n%s (%s)\n", visible.Line(cmp.Or(r.Name, "runner")), r.Answer)
		for _, v := range r.Verdicts {
			fmt.Fprintf(to, "  %s\n", visible.Line(v.String()))
		}
		if r.File != "" {
			fmt.Fprintf(to, "  the rule, %s:\n", visible.Line(r.File))
			for line := range strings.SplitSeq(strings.TrimRight(r.Text, "\n"), "\n") {
				fmt.Fprintf(to, "    %s\n", visible.Line(line))
			}
			fmt.Fprintf(to, "  to loosen it, then have the change planned again: %s\n", visible.Line(r.Loosen))
		}
	}
	if len(e.Rules) == 0 {
		fmt.Fprintln(to, "no guardrail says anything against it")
	}
}

func (s *settings) guardrailsSetCommand() *cobra.Command {
	var a guardrail.Answer
	var answer string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Loosen or tighten a guardrail",
		Long: `Says what a failure of a guardrail means: allow, warn, ask or deny, for some time or for good. It is written
to guardrails/` + guardrail.AnswersFile + ` and has effect at once; what was planned before is planned again.`,
		Example: "  berth-runner guardrails set cluster-scoped --answer warn --reason \"our platform team reviews these\"\n  berth-runner guardrails set host-path --answer ask --for 2h --component agent --reason \"ticket 4711\"",
		Args:    oneGuardrail,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Guardrail, a.Answer = args[0], policy.Answer(answer)
			if !a.Answer.Valid() {
				return usageError{fmt.Errorf("--answer %q is none of allow, warn, ask and deny", answer)}
			}
			if lasts < 0 {
				return usageError{errors.New("--for is a time that lies ahead")}
			}
			if strings.TrimSpace(a.Reason) == "" {
				return usageError{errors.New("--reason is needed, for who reads it later")}
			}
			a.At, a.By = time.Now().UTC().Truncate(time.Second), userName()
			if lasts > 0 {
				a.Until = a.At.Add(lasts)
			}
			return s.changeAnswers(cmd, a.Guardrail, func(all []guardrail.Answer) []guardrail.Answer {
				all = slices.DeleteFunc(all, func(b guardrail.Answer) bool {
					return b.Guardrail == a.Guardrail && slices.Equal(b.Components, a.Components)
				})
				return append(all, a)
			})
		},
	}
	cmd.Flags().StringVar(&answer, "answer", "", "allow, warn, ask or deny")
	cmd.Flags().DurationVar(&lasts, "for", 0, "how long it counts: 2h, 720h (default: for good)")
	cmd.Flags().StringSliceVar(&a.Components, "component", nil, "for this component only; may be given again")
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why, for the record")
	return cmd
}

func (s *settings) guardrailsUnsetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unset NAME", Short: "Let a guardrail answer again as it says itself", Args: oneGuardrail,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeAnswers(cmd, args[0], func(all []guardrail.Answer) []guardrail.Answer {
				return slices.DeleteFunc(all, func(b guardrail.Answer) bool { return b.Guardrail == args[0] })
			})
		},
	}
}

func oneGuardrail(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("the name of one guardrail is needed: berth-runner guardrails list shows them; see %s --help", cmd.CommandPath())}
	}
	return nil
}

// changeAnswers writes the answers file again.
func (s *settings) changeAnswers(cmd *cobra.Command, name string, change func([]guardrail.Answer) []guardrail.Answer) error {
	g, err := s.guards()
	if err != nil {
		return err
	}
	if shown, err := showGuardrails(g); err != nil || !slices.ContainsFunc(shown.Guardrails, func(one shownGuardrail) bool { return one.Name == name }) {
		return errors.Join(err, fmt.Errorf("there is no guardrail %q: berth-runner guardrails list shows them", name))
	}
	answers, err := g.Answers()
	if err != nil {
		return err
	}
	answers.Answers = change(answers.Answers)
	if err := g.SetAnswers(answers); err != nil {
		return err
	}
	set := g.Set()
	at := slices.IndexFunc(set.Answers, func(a guardrail.Answer) bool { return a.Guardrail == name })
	if at < 0 {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "guardrail %s answers as it says itself\n", visible.Line(name))
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "guardrail %s: %s%s%s\n", visible.Line(name), set.Answers[at].Answer, ofComponents(set.Answers[at].Components), until(set.Answers[at].Until))
	return err
}

const maxPermit = 30 * 24 * time.Hour

func (s *settings) allowDeprovisionCommand() *cobra.Command {
	var p guards.Permit
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "allow-deprovision", Short: "Let teardowns remove what holds data, for some time", Args: noArgs,
		Long: `A teardown removes databases, volumes and the like, so guardrails ask you about each part of it. This
command answers all of these questions ahead: for teardowns only, of the components that you name or of the
whole install, until the time is over. What a guardrail denies stays denied.`,
		Example: "  berth-runner guardrails allow-deprovision --for 4h --reason \"contract ended\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lasts <= 0 || lasts > maxPermit {
				return usageError{fmt.Errorf("--for is a time between 1s and %s", maxPermit)}
			}
			if strings.TrimSpace(p.Reason) == "" {
				return usageError{errors.New("--reason is needed, for who reads it later")}
			}
			g, err := s.guards()
			if err != nil {
				return err
			}
			p.At, p.By = time.Now().UTC().Truncate(time.Second), userName()
			p.Until = p.At.Add(lasts)
			if err := datadir.WriteJSON(g.Dir.Deprovision(), p); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "teardowns may remove what holds data%s%s\n", ofComponents(p.Components), until(p.Until))
			return err
		},
	}
	cmd.Flags().DurationVar(&lasts, "for", 0, "how long: 4h; at most 720h")
	cmd.Flags().StringSliceVar(&p.Components, "component", nil, "this component only; may be given again (default: the whole install)")
	cmd.Flags().StringVar(&p.Reason, "reason", "", "why, for the record")
	return cmd
}

func (s *settings) forbidDeprovisionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "forbid-deprovision", Short: "Take back what allow-deprovision permitted", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := s.guards()
			if err != nil {
				return err
			}
			if err := datadir.Remove(g.Dir.Deprovision()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "teardowns that remove what holds data ask you again")
			return err
		},
	}
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// guardrailsLine is how they stand, in one line.
func guardrailsLine(g guards.State) string {
	text := fmt.Sprintf("%d, %d of them your own files", g.Guardrails, g.Own)
	switch {
	case g.Development:
		text += "; they only warn, since trust is development"
	case g.OnlyWarn:
		text += "; they only warn, since guardrails/" + guardrail.AnswersFile + " says so"
	}
	return text
}
