package kyverno

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	enginecontext "github.com/kyverno/kyverno/pkg/engine/context"
	"github.com/kyverno/kyverno/pkg/engine/factories"
	"github.com/kyverno/kyverno/pkg/engine/jmespath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// outside is what an error says that comes of asking for what is not here.
const outside = "the policy engine has neither cluster nor network"

// absent is that error.
func absent(feature string) error { return fmt.Errorf("%s: %s", outside, feature) }

// asksOutside says whether an evaluation failed because a rule asked for what is not here.
func asksOutside(message string) bool {
	return strings.Contains(message, outside) ||
		strings.Contains(message, "no matching allowlist entry") || // http of CEL
		strings.Contains(message, "http calls are not allowed in namespaced policies")
}

// nothing is the world outside of a policy written in CEL: there is none.
type nothing struct{}

var _ libs.Context = nothing{}

func (nothing) GetGlobalReference(name, _ string) (any, error) {
	return nil, absent("globalContext " + name)
}

func (nothing) GetImageData(image string, _ []remote.Option) (map[string]any, error) {
	return nil, absent("data of image " + image)
}

func (nothing) ListResources(_, resource, _ string, _ map[string]string) (*unstructured.UnstructuredList, error) {
	return nil, absent("resource.List of " + resource)
}

func (nothing) GetResource(_, resource, _, name string) (*unstructured.Unstructured, error) {
	return nil, absent("resource.Get of " + resource + " " + name)
}

func (nothing) PostResource(_, resource, _ string, _ map[string]any) (*unstructured.Unstructured, error) {
	return nil, absent("resource.Post of " + resource)
}

func (nothing) ToGVR(_, kind string) (*schema.GroupVersionResource, error) {
	return nil, absent("the resource of kind " + kind)
}

func (nothing) GenerateResources(string, []map[string]any) error { return absent("generator.Apply") }

func (nothing) GetHTTPMocks() map[string]any                        { return nil }
func (nothing) GetGeneratedResources() []*unstructured.Unstructured { return nil }
func (nothing) ClearGeneratedResources()                            {}
func (n nothing) Clone() libs.Context                               { return n }

func (nothing) SetGenerateContext(_, _, _, _, _, _, _, _ string, _, _ bool) {}

// contexts loads the context of rules of classic policies. An entry that would ask a cluster
// or a registry fails when it is used; it must not be as if it were not there.
func contexts(p kyvernov1.PolicyInterface, r kyvernov1.Rule) engineapi.ContextLoader {
	return loader{variables: factories.DefaultContextLoaderFactory(nil)(p, r)}
}

type loader struct{ variables engineapi.ContextLoader }

func (l loader) Load(ctx context.Context, jp jmespath.Interface, client engineapi.RawClient, registry engineapi.RegistryClientFactory, entries []kyvernov1.ContextEntry, to enginecontext.Interface) error {
	for _, e := range entries {
		var feature string
		switch {
		case e.APICall != nil:
			feature = "apiCall"
		case e.GlobalReference != nil:
			feature = "globalReference"
		case e.ImageRegistry != nil:
			feature = "imageRegistry"
		case e.ConfigMap != nil:
			feature = "configMap"
		default: // a variable
			if err := l.variables.Load(ctx, jp, client, registry, []kyvernov1.ContextEntry{e}, to); err != nil {
				return err
			}
			continue
		}
		deferred, err := enginecontext.NewDeferredLoader(e.Name, missing{absent(feature + " (context entry " + e.Name + ")")}, logr.Discard())
		if err != nil {
			return err
		}
		if err := to.AddDeferredLoader(deferred); err != nil {
			return err
		}
	}
	return nil
}

// missing is an entry whose data cannot be had.
type missing struct{ err error }

func (m missing) LoadData() error { return m.err }
func (missing) HasLoaded() bool   { return false }
