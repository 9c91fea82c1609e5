package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const folder = root + "/deploy/observability"

// A rule is one alert of alerts.yaml.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// A dashboard is what Berth's own uses of Grafana's schema; other keys are typing
// mistakes.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	Timezone      string   `json:"timezone"`
	Refresh       string   `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Label string `json:"label"`
			Type  string `json:"type"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []any `json:"list"`
	} `json:"annotations"`
	Panels []panel `json:"panels"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  source `json:"datasource"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string  `json:"unit"`
			Min  float64 `json:"min"`
		} `json:"defaults"`
		Overrides []any `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID        string `json:"refId"`
		Datasource   source `json:"datasource"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

func board(t *testing.T) dashboard {
	t.Helper()
	text, err := os.Open(filepath.Join(folder, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	decoder := json.NewDecoder(text)
	decoder.DisallowUnknownFields()
	var d dashboard
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// ofTargets are labels that series have from the scrape configuration.
var ofTargets = []string{"job", "instance", "service"}

// faultsOf are what is wrong with an expression: it does not parse, or it names a
// metric or a label that the table lacks.
func faultsOf(expr string, table []row) []string {
	parsed, err := parser.ParseExpr(strings.NewReplacer("$__rate_interval", "5m").Replace(expr))
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	parser.Inspect(parsed, func(node parser.Node, above []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		labels, known := labelsOf(selector.Name, table)
		if !known {
			faults = append(faults, "there is no metric "+selector.Name)
			return nil
		}
		used := []string{}
		for _, m := range selector.LabelMatchers {
			used = append(used, m.Name)
		}
		for _, node := range above {
			if aggregate, is := node.(*parser.AggregateExpr); is {
				used = append(used, aggregate.Grouping...)
			}
		}
		for _, label := range used {
			if label != "__name__" && !slices.Contains(labels, label) {
				faults = append(faults, fmt.Sprintf("%s has no label %s", selector.Name, label))
			}
		}
		return nil
	})
	return faults
}

// labelsOf are the labels of a series by its name.
func labelsOf(name string, table []row) ([]string, bool) {
	if name == "up" { // Prometheus's own
		return ofTargets, true
	}
	for _, r := range table {
		labels := append(slices.Clone(r.by), ofTargets...)
		switch {
		case r.Kind != "histogram" && name == r.prometheus:
			return labels, true
		case r.Kind == "histogram" && name == r.prometheus+"_bucket":
			return append(labels, "le"), true
		case r.Kind == "histogram" && (name == r.prometheus+"_count" || name == r.prometheus+"_sum"):
			return labels, true
		}
	}
	return nil, false
}

// anchors are the sections of a page, as links name them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	const page = "docs/guides/alerts.md"
	table, sections := inTable(t), anchors(t, page)
	explained := map[string]bool{"set-it-up": true}
	for _, r := range alerts(t) {
		for _, fault := range faultsOf(r.Expr, table) {
			t.Errorf("%s: %s", r.Alert, fault)
		}
		if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q, want page or ticket", r.Alert, s)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
		in, section, _ := strings.Cut(r.Annotations["runbook"], "#")
		if in != page || !slices.Contains(sections, section) {
			t.Errorf("%s: the section %q of its runbook does not exist", r.Alert, r.Annotations["runbook"])
		}
		explained[section] = true
	}
	for _, section := range sections {
		if !explained[section] {
			t.Errorf("%s#%s is about no alert", page, section)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	table, d := inTable(t), board(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("the dashboard lacks its name, its schema or the choice of a datasource: %+v", d)
	}
	ids, wanted := map[int]bool{}, source{Type: "prometheus", UID: "${" + d.Templating.List[0].Name + "}"}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %d %q lacks its own id, a title, a target or a unit", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is out of the grid: %+v", p.Title, p.GridPos)
		}
		for _, target := range p.Targets {
			if p.Datasource != wanted || target.Datasource != wanted {
				t.Errorf("%s does not ask the chosen datasource", p.Title)
			}
			for _, fault := range faultsOf(target.Expr, table) {
				t.Errorf("%s: %s", p.Title, fault)
			}
		}
	}
}

// The example scrapes what deploy/k8s serves, with the labels that rules use.
func TestScrapeConfigurationFits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(folder, "prometheus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		RuleFiles     []string `json:"rule_files"`
		ScrapeConfigs []struct {
			JobName string `json:"job_name"`
			Relabel []struct {
				Source []string `json:"source_labels"`
				Regex  string   `json:"regex"`
				Action string   `json:"action"`
				Target string   `json:"target_label"`
			} `json:"relabel_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.RuleFiles, []string{"alerts.yaml"}) || len(config.ScrapeConfigs) != 1 || config.ScrapeConfigs[0].JobName != "berth" {
		t.Fatalf("it reads other rules, or has another job: %+v", config)
	}
	labels := []string{"job"}
	for _, r := range config.ScrapeConfigs[0].Relabel {
		if r.Target != "" {
			labels = append(labels, r.Target)
		}
	}
	for _, label := range ofTargets {
		if !slices.Contains(labels, label) {
			t.Errorf("no target gets the label %s, which rules use", label)
		}
	}
}

func TestFaultsOfExpressions(t *testing.T) {
	t.Parallel()
	table := inTable(t)
	tests := []struct{ name, expr, want string }{
		{"as it should be", `sum by (kind) (rate(workflow_duration_seconds_count{outcome="failed"}[5m]))`, ""},
		{"not PromQL", `sum by kind) (workflow_duration_seconds_count)`, "parse error"},
		{"no such metric", `sum(workflow_length)`, "there is no metric workflow_length"},
		{"a histogram without part", `rate(workflow_duration_seconds[5m])`, "there is no metric"},
		{"no such label to match", `runner_online{install="a"}`, "runner_online has no label install"},
		{"no such label to group by", `sum by (install) (runner_online)`, "runner_online has no label install"},
		{"buckets of what has none", `sum by (le) (runner_online)`, "runner_online has no label le"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(faultsOf(tt.expr, table), "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("faults: %q, want %q", got, tt.want)
			}
		})
	}
}
