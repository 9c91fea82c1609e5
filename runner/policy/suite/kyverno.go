package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	kyvernotest "github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/commands/test"
	"github.com/kyverno/kyverno/pkg/toggle"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/runner/policy/seal"
)

// row is a result as Kyverno's command prints it.
type row struct {
	Policy   string `json:"POLICY"`
	Rule     string `json:"RULE"`
	Resource string `json:"RESOURCE"`
	Result   string `json:"RESULT"`
	Reason   string `json:"REASON"`
	Message  string `json:"Message"`
}

// runKyverno runs one test file by Kyverno's own command, which prints what it finds.
func runKyverno(file string) (tests []Test) {
	failed := func(text string) []Test {
		result := Error
		if asksOutside(text) {
			result = Unknown
		}
		return []Test{{File: file, Result: result, Message: text}}
	}
	defer func() {
		if p := recover(); p != nil {
			tests = failed(fmt.Sprintf("the test brings Kyverno down: %v", p))
		}
	}()
	if err := toggle.HTTPAllowlist.Parse("https://none.invalid"); err != nil {
		return failed(err.Error())
	}
	quiet()
	// The command looks for files of this name below a folder, so others of folders below
	// come too: they are told apart by what it prints of each.
	var out bytes.Buffer
	command := kyvernotest.Command()
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceErrors = true
	command.SetArgs([]string{filepath.Dir(file), "--output-format", "json", "--detailed-results", "--remove-color"})
	err := command.Execute()
	outside := lookOutside(file)
	all := sections(out.String(), file)
	for _, section := range all {
		rows, found := rowsOf(section)
		if !found && err != nil { // the command goes no further
			return append(tests, failed(strings.Join(strings.Fields(err.Error()), " "))...)
		}
		if !found {
			return append(tests, failed("Kyverno gives no results for this test")...)
		}
		for _, r := range rows {
			t := r.test(file, warnings(section))
			if t.Result == Fail && outside[t.Policy] != "" {
				t.Result, t.Message = Unknown, "the policy has "+outside[t.Policy]+", which needs more than is here: "+t.Message
			}
			tests = append(tests, t)
		}
	}
	if len(all) == 0 && err != nil {
		return failed(strings.Join(strings.Fields(err.Error()), " "))
	}
	return tests
}

// features are words in policies that ask a registry.
var features = []string{"imageRegistry:", "verifyImages:", "kind: ImageValidatingPolicy", "kind: NamespacedImageValidatingPolicy", "image.GetMetadata"}

// lookOutside says which policies of a test ask a registry, and by what.
func lookOutside(file string) map[string]string {
	out := map[string]string{}
	raw, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	var test struct {
		Policies []string `json:"policies"`
	}
	if yaml.Unmarshal(raw, &test) != nil {
		return out
	}
	for _, p := range test.Policies {
		files, err := yamlFiles(filepath.Join(filepath.Dir(file), p))
		if err != nil {
			continue // Kyverno says what is wrong
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			for document := range strings.SplitSeq(string(raw), "\n---") {
				var object struct {
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
				}
				at := slices.IndexFunc(features, func(f string) bool { return strings.Contains(document, f) })
				if at >= 0 && yaml.Unmarshal([]byte(strings.TrimPrefix(document, "---")), &object) == nil {
					out[object.Metadata.Name] = strings.TrimPrefix(strings.TrimSuffix(features[at], ":"), "kind: ")
				}
			}
		}
	}
	return out
}

// yamlFiles are those that a path stands for.
func yamlFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if extension := filepath.Ext(file); err == nil && !entry.IsDir() && (extension == ".yaml" || extension == ".yml") {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// quiet keeps Kyverno's libraries from logging.
var quiet = sync.OnceFunc(func() {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
})

// sections are what the command prints of one file: a part for each test in it.
func sections(text, file string) []string {
	var out []string
	for _, part := range strings.Split(text, "Loading test ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		if strings.Contains(head, " "+file+" ") || strings.Contains(head, " "+filepath.Clean(file)+" ") {
			out = append(out, rest)
		}
	}
	return out
}

// rowsOf finds the results of a test in what the command prints of it.
func rowsOf(section string) (rows []row, found bool) {
	_, rest, found := strings.Cut(section, "Checking results ...")
	start := strings.IndexByte(rest, '[')
	if !found || start < 0 {
		return nil, false
	}
	err := json.NewDecoder(strings.NewReader(rest[start:])).Decode(&rows)
	return rows, err == nil
}

// ResultsOf reads what Kyverno's command printed of a file, by policy, rule and resource. It
// is for comparing.
func ResultsOf(text, file string) map[string][]Result {
	out := map[string][]Result{}
	for _, section := range sections(text, file) {
		rows, _ := rowsOf(section)
		for _, r := range rows {
			key := strings.Join([]string{r.Policy, r.Rule, r.Resource}, " ")
			out[key] = append(out[key], r.test(file, "").Result)
		}
	}
	return out
}

// warnings are the errors that the command only mentions: of policies that did not load.
func warnings(section string) string {
	var out []string
	for line := range strings.Lines(section) {
		if message, found := strings.CutPrefix(strings.TrimSpace(line), "ERROR: "); found {
			out = append(out, message)
		}
	}
	return strings.Join(out, "; ")
}

func (r row) test(file, warnings string) Test {
	t := Test{File: file, Policy: r.Policy, Rule: r.Rule, Resource: r.Resource, Message: r.Message}
	switch r.Result {
	case "Pass":
		t.Result = Pass
		if r.Reason == "Excluded" {
			t.Message = "no rule of the policy looks at it, which Kyverno counts as passed"
		}
	case "Skip": // Kyverno counts it as passed, though it did not look
		t.Result = Unknown
		t.Message = strings.TrimSpace(r.Reason + ": " + r.Message)
	default:
		t.Result = Fail
		if t.Message != r.Reason {
			t.Message = strings.TrimSpace(r.Reason + ": " + r.Message)
		}
		if warnings != "" {
			t.Message += " (" + warnings + ")"
		}
		if asksOutside(t.Message) {
			t.Result = Unknown
		}
	}
	return t
}

// asksOutside: it failed because there is no network.
func asksOutside(text string) bool {
	return strings.Contains(text, "no matching allowlist entry") || strings.Contains(text, "socket: operation not permitted") ||
		strings.Contains(text, "lookup ") && strings.Contains(text, seal.NoNetwork)
}
