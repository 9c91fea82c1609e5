package main

// Everything in an image but its ground and packages.
const (
	binDir = "usr/local/bin"
	docDir = "usr/share/doc/berth"
)

// nonRoot is the user of every image; any other works as well.
const nonRoot = "65532:65532"

// A recipe is what one image is made of.
type recipe struct {
	Name        string // of the repository, after the prefix
	Title       string // shown by registries
	Description string

	// Executables are on its PATH; the first is what it runs. A service has
	// those that it starts itself: builder starts Build Runners, which start
	// engines. No service starts git, a shell or anything else.
	Executables []string
	// Packages says that it has a root file system of Debian packages, with a
	// shell: what scripts of apps expect.
	Packages bool
	// Env is the environment, besides PATH.
	Env []string
}

// recipes are all images. Terraform is in none of them: its license does not
// let us ship it, so the runner fetches it.
var recipes = []recipe{
	{
		Name: "ctl-api", Title: "Berth ctl-api", Description: "The public API and all decisions of Berth's control plane",
		Executables: []string{"berth-ctl-api"},
	},
	{
		Name: "runner-api", Title: "Berth runner-api", Description: "Where Berth's runners enroll, poll and report",
		Executables: []string{"berth-runner-api"},
	},
	{
		Name: "builder", Title: "Berth builder", Description: "Builds, releases and the registry of Berth's control plane",
		Executables: []string{"berth-builder", "berth-runner", "berth-engine", "berth-policy", "buildctl"},
	},
	{
		Name: "log-ingest", Title: "Berth log-ingest", Description: "The log store of Berth's control plane",
		Executables: []string{"berth-log-ingest"},
	},
	{
		Name: "berth", Title: "Berth", Description: "The command line of Berth, and its front: one address for runners",
		Executables: []string{"berth"},
	},
	{
		Name: "runner", Title: "Berth runner", Description: "Runs Berth's jobs on the customer's side",
		Executables: []string{"berth-runner", "berth-engine", "berth-policy", "kubectl"},
		Packages:    true, Env: []string{"BERTH_TERRAFORM=fetch"},
	},
}
