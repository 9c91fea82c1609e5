package appconfig

// Metadata is metadata.toml: what people see of the app.
type Metadata struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Version         string            `toml:"version" json:"version" rule:"required"` // "v1" or "v2"; says nothing about the layout
	DisplayName     string            `toml:"display_name" json:"display_name,omitempty"`
	Description     string            `toml:"description" json:"description,omitempty"`
	Readme          *Text             `toml:"readme" json:"readme,omitempty" template:"always"`
	SlackWebhookURL string            `toml:"slack_webhook_url" json:"slack_webhook_url,omitempty"`
	LabelColors     map[string]string `toml:"label_colors" json:"label_colors,omitempty"`
	DefaultLabels   map[string]string `toml:"default_labels" json:"default_labels,omitempty" template:"true"`
	Onboarding      *Onboarding       `toml:"onboarding" json:"onboarding,omitempty"`
}

// Onboarding places the app in a gallery of examples.
type Onboarding struct {
	Enabled       bool   `toml:"enabled" json:"enabled,omitempty"`
	Category      string `toml:"category" json:"category,omitempty"`
	Difficulty    string `toml:"difficulty" json:"difficulty,omitempty"`
	CloudProvider string `toml:"cloud_provider" json:"cloud_provider,omitempty"`
}

func (m *Metadata) check(c *checker) {
	c.oneOf(m.At.key("version"), m.Version, "v1", "v2")
}
