// Package guards keeps the customer's guardrails for the agent: it reads their files, asks the
// policy engine, and remembers what the customer agreed to. What follows from an answer is
// decided in package guardrail.
//
//	guardrails/*.yaml, *.rego, answers.json   the customer's files
//	guardrails/.cluster.json  the ConfigMap berth-runner-guardrails, as it was last
//	guardrails-agreed.json    kinds of objects that the customer is not asked about again
//	guardrails-state.json     what `berth-runner status` shows of the set
//	deprovision.json          that what holds data may be removed, and until when
//
// Files are read for each decision: what the customer writes has effect at once.
package guards

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// ConfigMap is the name of the customer's guardrails in a cluster.
const ConfigMap = "berth-runner-guardrails"

// Folder is where guardrails are in a data directory.
type Folder struct{ Dir datadir.Dir }

// clusterFiles is the ConfigMap as the agent saw it last.
type clusterFiles struct {
	Files map[string]string `json:"files"`
	At    time.Time         `json:"at"`
}

// Read reads all files. One that anybody but the customer could have written is there with
// what is wrong with it. Load makes a set of them.
func (f Folder) Read() ([]guardrail.File, error) {
	list, err := f.local()
	if err != nil {
		return nil, err
	}
	var copied clusterFiles
	if _, err := datadir.ReadJSON(f.Dir.GuardrailsOfCluster(), &copied); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(copied.Files)) {
		list = append(list, guardrail.File{Name: name, Text: copied.Files[name], Written: copied.At, From: "ConfigMap " + ConfigMap})
	}
	return list, nil
}

func (f Folder) local() ([]guardrail.File, error) {
	root, err := os.OpenRoot(f.Dir.Guardrails())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	folder, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	strangers := strange(folder)
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var list []guardrail.File
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // an editor's, or on its way to its name
		}
		one := readFile(root, e.Name())
		if one.From = "guardrails"; strangers != "" {
			one.Wrong = "its folder " + strangers
		}
		list = append(list, one)
	}
	if len(list) == 0 && strangers != "" {
		list = append(list, guardrail.File{Name: "guardrails", Wrong: "the folder " + strangers})
	}
	return list, nil
}

func readFile(root *os.Root, name string) guardrail.File {
	f := guardrail.File{Name: name}
	info, err := root.Lstat(name)
	if err == nil {
		f.Written = info.ModTime()
		if f.Wrong = strange(info); f.Wrong != "" {
			return f
		}
	}
	var raw []byte
	if err == nil {
		raw, _, err = datadir.ReadRegular(root, name, guardrail.MaxFile)
	}
	if err != nil {
		f.Wrong = "it cannot be read: " + err.Error()
	}
	f.Text = string(raw)
	return f
}

// strange says why somebody else than the customer may have written a file or a folder, ""
// when nobody can.
func strange(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir() && !info.Mode().IsRegular():
		return "is not a regular file"
	case !ok:
		return "has no owner that is known"
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d: it does not count until it is root's (chown root)", stat.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("can be written by others (mode %04o): it does not count until that ends (chmod go-w)", info.Mode().Perm())
	}
	return ""
}

// TakeConfigMap writes down what the cluster's ConfigMap says, nil when it is gone.
func (f Folder) TakeConfigMap(files map[string]string, now time.Time) error {
	var before clusterFiles
	found, err := datadir.ReadJSON(f.Dir.GuardrailsOfCluster(), &before)
	switch {
	case len(files) == 0:
		return datadir.Remove(f.Dir.GuardrailsOfCluster())
	case err == nil && found && maps.Equal(before.Files, files):
		return nil
	}
	return datadir.WriteJSON(f.Dir.GuardrailsOfCluster(), clusterFiles{Files: files, At: now})
}

// Permit is the customer's word that what holds data may be removed in teardowns.
type Permit struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"`
	// Components are those that may be torn down; none is the whole install.
	Components []string  `json:"components,omitempty"`
	At         time.Time `json:"at"`
}

// Permits says whether a teardown of a component, "" for the sandbox, is permitted now.
func (f Folder) Permits(component string, now time.Time) (Permit, bool, error) {
	var p Permit
	found, err := datadir.ReadJSON(f.Dir.Deprovision(), &p)
	if err != nil || !found || !now.Before(p.Until) {
		return p, false, err
	}
	return p, len(p.Components) == 0 || component != "" && slices.Contains(p.Components, component), nil
}

// agreedKinds are kinds that the customer agreed to.
type agreedKinds struct {
	Kinds []Agreed `json:"kinds"`
}

// Agreed is a kind that the customer agreed to, with the change by which that was.
type Agreed struct {
	guardrail.Kind
	Change string    `json:"change_id"`
	At     time.Time `json:"at"`
}

// Agreed are the kinds that the customer is not asked about again.
func (f Folder) Agreed() ([]Agreed, error) {
	var all agreedKinds
	_, err := datadir.ReadJSON(f.Dir.GuardrailsAgreed(), &all)
	return all.Kinds, err
}

// Remember adds kinds that the customer agreed to.
func (f Folder) Remember(kinds []guardrail.Kind, change string, now time.Time) error {
	have, err := f.Agreed()
	if err != nil {
		return err
	}
	all := agreedKinds{Kinds: have}
	for _, k := range kinds {
		if !slices.ContainsFunc(have, func(a Agreed) bool { return a.Kind == k }) {
			all.Kinds = append(all.Kinds, Agreed{Kind: k, Change: change, At: now})
		}
	}
	if len(all.Kinds) == len(have) {
		return nil
	}
	return datadir.WriteJSON(f.Dir.GuardrailsAgreed(), all)
}

// Answers is the customer's answers file of this machine, empty when there is none.
func (f Folder) Answers() (guardrail.Answers, error) {
	raw, err := os.ReadFile(f.answersFile())
	if errors.Is(err, fs.ErrNotExist) {
		return guardrail.Answers{}, nil
	}
	if err != nil {
		return guardrail.Answers{}, err
	}
	a, line, err := guardrail.ReadAnswers(raw)
	if err != nil {
		return a, fmt.Errorf("%s:%d: %w", f.answersFile(), line, err)
	}
	return a, nil
}

// SetAnswers writes that file.
func (f Folder) SetAnswers(a guardrail.Answers) error {
	if err := os.MkdirAll(f.Dir.Guardrails(), 0o700); err != nil {
		return err
	}
	return datadir.WriteJSON(f.answersFile(), a)
}

func (f Folder) answersFile() string {
	return filepath.Join(f.Dir.Guardrails(), guardrail.AnswersFile)
}
