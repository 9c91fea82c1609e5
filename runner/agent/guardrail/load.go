package guardrail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
)

// AnswersFile is the file in which the customer loosens and tightens guardrails.
const AnswersFile = "answers.json"

// Limits of what is read.
const (
	MaxFiles = 500
	MaxFile  = 1 << 20 // bytes
)

// File is one of the customer's.
type File struct {
	Name    string // without a folder
	Text    string
	Written time.Time
	// From names where it stands, for people: a folder, or a ConfigMap.
	From string
	// Wrong says why it does not count, "" when it does.
	Wrong string
}

func (f File) place() string { return path.Join(f.From, f.Name) }

// Answers is the content of AnswersFile.
type Answers struct {
	// OnlyWarn has all guardrails warn instead of asking or denying.
	OnlyWarn bool     `json:"only_warn,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Answers  []Answer `json:"answers,omitempty"`
}

// Answer says what a failure of a guardrail means, in place of its own word.
type Answer struct {
	Guardrail string        `json:"guardrail"`
	Answer    policy.Answer `json:"answer"`
	// Components are those that it is for; none is everything.
	Components []string `json:"components,omitempty"`
	// Until is when it ends, zero for never.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

func (a Answer) key() string {
	return fmt.Sprintf("%s=%s %q until %d", a.Guardrail, a.Answer, a.Components, a.Until.Unix())
}

// Options say where a set counts.
type Options struct {
	// Registry is that of the install as kubelets name it, "" for none.
	Registry    string
	Development bool
	Now         time.Time
}

// Load reads the customer's files, over the standard set.
func Load(files []File, o Options) Set {
	s := Set{Development: o.Development}
	all := standardRules(o.Registry)
	if len(files) > MaxFiles {
		s.Problems = append(s.Problems, Problem{File: files[0].From, Text: fmt.Sprintf("there are %d files, more than %d", len(files), MaxFiles)})
		files = files[:MaxFiles]
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.From, b.From)) })
	var answers []placed
	for _, f := range files {
		wrong := func(line int, format string, arguments ...any) {
			s.Problems = append(s.Problems, Problem{File: f.place(), Line: line, Text: fmt.Sprintf(format, arguments...)})
		}
		name, language, v0 := kindOf(f.Name)
		switch {
		case f.Wrong != "":
			wrong(0, "%s", f.Wrong)
		case len(f.Text) > MaxFile:
			wrong(0, "it is longer than %d bytes", MaxFile)
		case f.Name == AnswersFile:
			read, line, err := ReadAnswers([]byte(f.Text))
			if err != nil {
				wrong(line, "%v", err)
				continue
			}
			s.OnlyWarn = s.OnlyWarn || read.OnlyWarn
			for _, a := range read.Answers {
				answers = append(answers, placed{a, f.place()})
			}
		case language == "":
			wrong(0, "guardrails are files .yaml, .yml or .rego, and %s", AnswersFile)
		case slices.ContainsFunc(all, func(r Rule) bool { return r.Name == name }):
			wrong(0, "there is another guardrail named %s: rename the file", name)
		default:
			all = append(all, Rule{Since: f.Written, Rules: policy.Rules{Name: name, Language: language, RegoV0: v0, Text: f.Text, File: f.place()}})
		}
	}
	s.settle(all, answers, o.Now)
	return s
}

type placed struct {
	Answer
	file string
}

// settle takes the answers that are in force, and leaves out rules that they allow.
func (s *Set) settle(all []Rule, answers []placed, now time.Time) {
	for _, a := range answers {
		known := slices.ContainsFunc(all, func(r Rule) bool { return r.Name == a.Guardrail }) ||
			slices.ContainsFunc(Standards, func(r Standard) bool { return r.Name == a.Guardrail })
		switch {
		case !known:
			s.Problems = append(s.Problems, Problem{File: a.file, Text: fmt.Sprintf("there is no guardrail %q", a.Guardrail)})
		case a.Until.IsZero() || now.Before(a.Until):
			s.Answers = append(s.Answers, a.Answer)
		}
	}
	for _, r := range all {
		if s.asks(r) {
			s.Rules = append(s.Rules, r)
		}
	}
}

// kindOf says by its name what a file is; language is "" for no guardrail.
func kindOf(file string) (name string, language policy.Language, v0 bool) {
	extension := path.Ext(file)
	name = strings.TrimSuffix(file, extension)
	switch extension {
	case ".yaml", ".yml":
		language = policy.Kyverno
	case ".rego":
		language = policy.Rego
		name, v0 = strings.CutSuffix(name, ".v0")
	}
	return name, language, v0
}

// ReadAnswers reads an answers file; line says where it is wrong.
func ReadAnswers(raw []byte) (a Answers, line int, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		var wrongType *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			at = syntax.Offset
		case errors.As(err, &wrongType):
			at = wrongType.Offset
		}
		return Answers{}, 1 + bytes.Count(raw[:min(max(at, 0), int64(len(raw)))], []byte("\n")), err
	}
	if d.More() {
		return Answers{}, 1, errors.New("there is more than one JSON value in it")
	}
	if a.OnlyWarn && strings.TrimSpace(a.Reason) == "" {
		return Answers{}, 1, errors.New("only_warn needs a reason")
	}
	for i, one := range a.Answers {
		if err := one.check(); err != nil {
			return Answers{}, 1, fmt.Errorf("answers[%d]: %w", i, err)
		}
	}
	return a, 0, nil
}

func (a Answer) check() error {
	switch {
	case a.Guardrail == "":
		return errors.New("it names no guardrail")
	case !a.Answer.Valid():
		return fmt.Errorf("answer %q is none of allow, warn, ask and deny", a.Answer)
	case strings.TrimSpace(a.Reason) == "":
		return errors.New("it needs a reason, for who reads it later")
	}
	return nil
}
