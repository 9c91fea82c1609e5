package job

import (
	"encoding/json"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// metricsWithoutSecrets are the numbers of a result without every known secret, and what
// is said about those that were left out. In texts a secret is redacted; a number with
// one in its names, or that is one, is left out.
func (j *job) metricsWithoutSecrets(r jobspec.Result) ([]jobspec.Metric, string) {
	if len(r.Metrics) == 0 && r.MetricsError == "" {
		return nil, ""
	}
	var kept []jobspec.Metric
	var problems []string
	hidden := func(text string) bool { return j.secrets.set.String(text) != text }
	for _, m := range r.Metrics {
		value, err := json.Marshal(m.Value)
		if err != nil || hidden(string(value)) || hidden(m.Name) {
			problems = append(problems, "a secret was written as a number or a name")
			continue
		}
		labels, redacted := map[string]string{}, false
		for name, text := range m.Labels {
			labels[j.secrets.set.String(name)] = j.secrets.set.String(text)
			redacted = redacted || hidden(text)
		}
		if redacted {
			problems = append(problems, "a label of "+m.Name+" has a secret in it, which was redacted")
		}
		m.Labels, m.Help = labels, j.secrets.set.String(m.Help)
		if len(labels) == 0 {
			m.Labels = nil
		}
		kept = append(kept, m)
	}
	if r.MetricsError != "" {
		problems = append(problems, j.secrets.set.String(r.MetricsError))
	}
	// An engine is not trusted to keep to the limits, and what was redacted may be longer,
	// or be the same as others.
	kept, more := jobspec.KeepMetrics(kept)
	return kept, jobspec.SayProblems(append(problems, more...))
}
