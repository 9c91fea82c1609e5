package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Metadata is metadata.toml: what people see of the app.
type Metadata struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Version of the format. It says nothing about the layout of the folder.
	Version string `toml:"version" json:"version" rule:"required" enum:"v1,v2"`
	// The app's name for people.
	DisplayName string `toml:"display_name" json:"display_name,omitempty"`
	// What the app is, in a sentence.
	Description string `toml:"description" json:"description,omitempty"`
	// The page of each install, in Markdown.
	Readme *place.Text `toml:"readme" json:"readme,omitempty" template:"always"`
	// Where messages about the app go.
	SlackWebhookURL string `toml:"slack_webhook_url" json:"slack_webhook_url,omitempty"`
	// Colours of labels in the dashboard: the label's key to "#rrggbb".
	LabelColors map[string]string `toml:"label_colors" json:"label_colors,omitempty"`
	// Labels that every install gets and nobody edits elsewhere.
	DefaultLabels map[string]string `toml:"default_labels" json:"default_labels,omitempty" template:"true"`
	// The app's place in a gallery of examples.
	Onboarding *Onboarding `toml:"onboarding" json:"onboarding,omitempty"`
	// What goes into packages for customers who run the app without the vendor.
	CustomerManaged *CustomerManaged `toml:"customer_managed" json:"customer_managed,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// Onboarding places the app in a gallery of examples.
type Onboarding struct {
	// Shows the app in the gallery.
	Enabled bool `toml:"enabled" json:"enabled,omitempty" default:"false"`
	// The category that it is listed under.
	Category string `toml:"category" json:"category,omitempty"`
	// How hard it is to try.
	Difficulty string `toml:"difficulty" json:"difficulty,omitempty"`
	// The cloud that it needs.
	CloudProvider string `toml:"cloud_provider" json:"cloud_provider,omitempty"`
}

func (m *Metadata) check(c *checker) {
	if m.CustomerManaged != nil {
		m.CustomerManaged.check(c, m.At.Below("customer_managed"))
	}
}

// CustomerManaged is the customer_managed table of metadata.toml, or
// customer_managed.toml: what goes into packages for customers who run the app
// without the vendor's control plane.
type CustomerManaged struct {
	// The runner's image, without tag.
	RunnerImageURL string `toml:"runner_image_url" json:"runner_image_url" rule:"required"`
	// The tag of the runner's image.
	RunnerImageTag string `toml:"runner_image_tag" json:"runner_image_tag" rule:"required"`
	// The platforms that packages are made for.
	Platforms []CustomerPlatform `toml:"platforms" json:"platforms,omitempty" rule:"required"`
}

// CustomerPlatform names the programs for one platform.
type CustomerPlatform struct {
	// Operating system and architecture, such as "linux/amd64".
	Target string `toml:"target" json:"target" rule:"required"`
	// Where the portal is downloaded from.
	PortalBinaryURL string `toml:"portal_binary_url" json:"portal_binary_url" rule:"required"`
	// Where the runner is downloaded from.
	RunnerBinaryURL string `toml:"runner_binary_url" json:"runner_binary_url" rule:"required"`
}

func (m *CustomerManaged) check(c *checker, at place.Place) {
	for i, p := range m.Platforms {
		first := slices.IndexFunc(m.Platforms, func(other CustomerPlatform) bool { return other.Target == p.Target })
		if first < i {
			c.Add(place.Error, place.CodeDuplicate, at.Below("platforms").Item(i).Below("target"), "platform %q is there twice", p.Target)
		}
	}
}
