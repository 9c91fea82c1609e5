package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/steptool"
)

// BlockExtension is the [berth] table of a sandbox or a component: what Berth
// adds to the public format.
type BlockExtension struct {
	// A directory of the app folder that holds the source.
	LocalSource string `toml:"local_source" json:"local_source,omitempty" digest:"build"`
	// A plugin in a registry: "oci://host/path:tag", or "oci://host/path@sha256:…". Only for components whose type is a plugin's.
	OCISource string `toml:"oci_source" json:"oci_source,omitempty" digest:"build"`
	// The public key, in PEM, that must have signed the image of somebody else's, with cosign or another tool of sigstore. Only for components of type container_image. Its build verifies it, without asking a server; an image without such a signature is not taken.
	ImageKey string `toml:"image_key" json:"image_key,omitempty" digest:"build"`
	// Which tool works on the Terraform module: "terraform" or "opentofu". Without it, the one that the runner's operator chose, which is Terraform by default. Of OpenTofu, terraform_version is its own version.
	Tool string `toml:"tool" json:"tool,omitempty" enum:"terraform,opentofu" digest:"build"`
	// What going back to an earlier release costs: "reversible" nothing, "data_loss" what was written since, "irreversible" cannot be done.
	Rollback string `toml:"rollback" json:"rollback,omitempty" enum:"reversible,data_loss,irreversible" digest:"config"`
	// Takes it back to the release and the inputs of before, once, when its deploy fails and the plan says that this is reversible. The rollback is planned and needs the same approval as any other.
	AutoRollback bool `toml:"auto_rollback" json:"auto_rollback,omitempty" default:"false" digest:"config"`
	// What its changes may do that customers' guardrails stop by default: "deletes_data", "changes_iam", "changes_rbac".
	Guardrails []string `toml:"guardrails" json:"guardrails,omitempty" digest:"config"`
	// When the probe of its objects changes a verdict, and what is done about a bad one. Only for components that run in a cluster.
	HealthCheck *HealthCheck `toml:"health_check" json:"health_check,omitempty" digest:"config"`
	// Why a stand-in takes its place, written by `berth rehearse`. Only a rehearsal may have it.
	StandIn string `toml:"stand_in" json:"stand_in,omitempty" digest:"config"`
	// How looks for drift see it. Only for components that are charts or manifests.
	Drift *DriftExtension `toml:"drift" json:"drift,omitempty" digest:"config"`
	// Which plugin deploys the component; needed when its type is none of ours.
	Plugin *PluginGrant `toml:"plugin" json:"plugin,omitempty" digest:"deploy"`
}

// PluginGrant is the [berth.plugin] table of a component whose type is a plugin's.
// The plugin itself is the component's source.
type PluginGrant struct {
	// The public key that must have signed the plugin, in base64.
	Signer string `toml:"signer" json:"signer" rule:"required"`
	// Lets it use the network of the runner's machine.
	Network bool `toml:"network" json:"network,omitempty" default:"false"`
	// What it may reach of the network instead: "api.example.com:443", "*.example.com", "10.1.2.3:5432". The port is 443 by default.
	Hosts []string `toml:"hosts" json:"hosts,omitempty"`
	// Lets it read and write the install's directory.
	InstallDir bool `toml:"install_dir" json:"install_dir,omitempty" default:"false"`
	// What it sees of the runner's machine at its own place: "/etc/myapp:ro" to read, "/var/lib/myapp" to write as well.
	Paths []string `toml:"paths" json:"paths,omitempty"`
	// Roles of the app, break-glass or custom, without which it neither plans nor applies: the customer switches them on.
	Roles []string `toml:"roles" json:"roles,omitempty" template:"true"`
	// Keeps a directory of its own between its jobs, sealed to the install.
	State bool `toml:"state" json:"state,omitempty" default:"false"`
}

// ActionExtension is the [berth] table of an action: what Berth adds to the
// public format.
type ActionExtension struct {
	// Makes the action a health check.
	HealthCheck *HealthCheck `toml:"health_check" json:"health_check,omitempty"`
	// Programs that its steps need, each with the lowest version if that matters: "kubectl", "jq>=1.6". They are looked for where the steps run; without one of them no step starts.
	Tools []string `toml:"tools" json:"tools,omitempty"`
	// What it may do that customers' guardrails stop by default: "deletes_data", "changes_iam", "changes_rbac".
	Guardrails []string `toml:"guardrails" json:"guardrails,omitempty"`
	// Why a stand-in takes its place, written by `berth rehearse`. Only a rehearsal may have it.
	StandIn string `toml:"stand_in" json:"stand_in,omitempty"`
}

// StandIns says, by "sandbox", "component/NAME" and "action/NAME", why a stand-in
// takes the place of a part. An app with any can only be rehearsed.
func (a *App) StandIns() map[string]string {
	all := map[string]string{}
	if s := a.Sandbox; s != nil && s.Berth != nil && s.Berth.StandIn != "" {
		all[BlockSandbox] = s.Berth.StandIn
	}
	for i := range a.Components {
		if c := &a.Components[i]; c.Berth != nil && c.Berth.StandIn != "" {
			all[BlockComponent+"/"+c.Name] = c.Berth.StandIn
		}
	}
	for i := range a.Actions {
		if action := &a.Actions[i]; action.Berth != nil && action.Berth.StandIn != "" {
			all[BlockAction+"/"+action.Name] = action.Berth.StandIn
		}
	}
	return all
}

// guardrailHints are what default guardrails stop without a customer's consent.
var guardrailHints = []string{"deletes_data", "changes_iam", "changes_rbac"}

// tools checks the programs that an action needs.
func (c *checker) tools(at place.Place, tools []string) {
	names := map[string]bool{}
	for i, text := range tools {
		tool, err := steptool.Parse(text)
		switch {
		case err != nil:
			c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at.Item(i), "%v", err).WithRemedy("%s", steptool.Remedy))
		case names[tool.Name]:
			c.Add(place.Error, place.CodeDuplicate, at.Item(i), "%q is said twice", tool.Name)
		}
		names[tool.Name] = true
	}
}

func (c *checker) guardrails(at place.Place, hints []string) {
	for i, hint := range hints {
		c.OneOf(at.Item(i), hint, guardrailHints...)
		if slices.Contains(hints[:i], hint) {
			c.Add(place.Error, place.CodeDuplicate, at.Item(i), "%q is said twice", hint)
		}
	}
}
