package configdiff

import (
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// sensitive stands for a value that is not shown.
const sensitive = jobspec.Sensitive

func masked(value string) string {
	if value == "" {
		return ""
	}
	return sensitive
}

// hiding says which fields of an object are not shown. An input that is
// sensitive on one side only is hidden on both.
func hiding(versions ...*appconfig.App) func(kind, name string) func(path string) bool {
	inputs := map[string]bool{}
	for _, app := range versions {
		if app == nil {
			continue
		}
		for _, in := range app.Inputs {
			inputs[in.Name] = inputs[in.Name] || in.Sensitive
		}
	}
	return func(kind, name string) func(path string) bool {
		return func(path string) bool {
			switch kind {
			case "metadata":
				return path == "slack_webhook_url" // anybody who has it may write there
			case "input":
				return inputs[name] && path == "default"
			case "secret":
				return path == "default"
			}
			return false
		}
	}
}
