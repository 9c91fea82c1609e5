package statetree

import (
	"maps"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
)

// RehearsalKey is where the tree of a rehearsal says so: the platform, and for each
// output that stands in for one of a cloud where it is from. Templates cannot read
// it.
const RehearsalKey = "rehearsal"

// rehearse adds what a cloud would give to the parts of a rehearsal's tree. What
// the stack of the install gives itself, such as its directory, stays as it is, and
// so do the outputs of the sandbox and components, which their stand-ins give. It
// returns what is said about them; nil for a real install.
func (b *builder) rehearse(parts *interpolate.Parts, app *appconfig.App) (map[string]any, error) {
	r, err := releaseview.RehearsalOf(b.Install)
	if err != nil || r == nil {
		return nil, err
	}
	if app == nil {
		app = &appconfig.App{} // nothing of it is deployed yet
	}
	made := rehearsal.Complete(app, *r)
	outputs := maps.Clone(made.Stack)
	if outputs == nil {
		outputs = map[string]any{}
	}
	maps.Copy(outputs, parts.Stack.Outputs)
	parts.Stack.Outputs = outputs
	parts.CloudAccount = made.CloudAccount
	parts.Domain.Public, _ = made.Domain["public_domain"].(string)
	parts.Domain.Internal, _ = made.Domain["internal_domain"].(string)
	parts.Secrets = map[string]interpolate.Secret{}
	for _, s := range app.Secrets {
		parts.Secrets[s.Name] = interpolate.Secret{
			ARN: made.SecretARN(s.Name), KubernetesNamespace: b.Install.ID, KubernetesName: s.Name, KubernetesKey: "value",
			Timestamp: time.Unix(0, 0).UTC(), Exists: true, Version: 1, Value: "made-up-" + s.Name,
		}
	}
	list := make([]any, len(made.Origins))
	for i, o := range made.Origins {
		list[i] = map[string]any{"path": o.Path, "source": string(o.Source), "value": o.Value}
	}
	return map[string]any{"platform": string(r.Platform), "outputs": list}, nil
}
