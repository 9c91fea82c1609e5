package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Installer is installer.toml: the page of an older installer. It is read, and
// has no effect.
type Installer struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// The page's title.
	Name string `toml:"name" json:"name,omitempty"`
	// The text below it.
	Description string `toml:"description" json:"description,omitempty"`
	// Names of the apps that the page offers.
	Apps []string `toml:"apps" json:"apps,omitempty"`
	// Address of the documentation.
	DocumentationURL string `toml:"documentation_url" json:"documentation_url,omitempty"`
	// Address of the community.
	CommunityURL string `toml:"community_url" json:"community_url,omitempty"`
	// Address of the homepage.
	HomepageURL string `toml:"homepage_url" json:"homepage_url,omitempty"`
	// Address of the repository.
	GithubURL string `toml:"github_url" json:"github_url,omitempty"`
	// Address of the logo.
	LogoURL string `toml:"logo_url" json:"logo_url,omitempty"`
	// Address of a demo.
	DemoURL string `toml:"demo_url" json:"demo_url,omitempty"`
	// What is shown after an install, in Markdown.
	PostInstallMarkdown string `toml:"post_install_markdown" json:"post_install_markdown,omitempty"`
	// What is shown at the bottom, in Markdown.
	FooterMarkdown string `toml:"footer_markdown" json:"footer_markdown,omitempty"`
	// The copyright line, in Markdown.
	CopyrightMarkdown string `toml:"copyright_markdown" json:"copyright_markdown,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}
