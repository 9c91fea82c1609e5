package secretsync

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// source is which value a key of a copy has, without the value.
type source struct {
	Secret  string `json:"secret"`
	Version int    `json:"version"`
	Digest  string `json:"digest"`
}

// digestShown is how much of a digest people are shown: enough to tell two values apart.
const digestShown = len("hmac-sha256:") + 16

// String is what a plan shows in the place of the value.
func (s source) String() string {
	return fmt.Sprintf("%s version %d (%s)", s.Secret, s.Version, s.Digest[:min(len(s.Digest), digestShown)])
}

// target is a Secret as it is to be.
type target struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Keys      map[string]source `json:"keys"`
	// data has the values by key. Only what is pinned has them too.
	data map[string][]byte
}

func (t target) ref() kube.Ref { return secretRef(t.Namespace, t.Name) }

func secretRef(namespace, name string) kube.Ref {
	return kube.Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

// maxData is what a Secret holds at most, in bytes.
const maxData = 1 << 20

// kept is a secret in the state of a job, as the agent has filled it in.
type kept struct {
	Exists  bool        `json:"exists"`
	Version json.Number `json:"version"`
	Digest  string      `json:"digest"`
	Value   string      `json:"value"`
}

// wanted gives the targets of an order, by namespace and name, and the names of secrets that
// have no value, which are not copied.
func wanted(j *job.Job) (targets []target, without []string, err error) {
	secrets, state, err := takeValues(j.Spec.State, j.Spec.SecretSync.Copies)
	if err != nil {
		return nil, nil, err
	}
	byRef := map[kube.Ref]target{}
	for _, c := range j.Spec.SecretSync.Copies {
		secret, known := secrets[c.Secret]
		if !known {
			return nil, nil, job.Wrongf("deploy a release that declares it", "the state of the install has no secret %s", c.Secret)
		}
		at, key, err := place(j, state, c)
		if err != nil {
			return nil, nil, err
		}
		if !secret.Exists {
			without = append(without, c.Secret)
			continue
		}
		t, seen := byRef[at.ref()]
		if !seen {
			t = at
		}
		if before, twice := t.Keys[key]; twice {
			return nil, nil, job.Wrongf("give one of the two another key, or another Secret",
				"secrets %s and %s are both copied to key %s of %s", before.Secret, c.Secret, key, t.ref().Address())
		}
		value, err := customersecret.Decode(c.Format, secret.Value)
		if err != nil {
			return nil, nil, job.Wrongf("set it again with `berth-runner secrets set "+c.Secret+"`", "secret %s is no base64, which the app asks for", c.Secret)
		}
		version, err := secret.Version.Int64()
		if err != nil || secret.Digest == "" {
			return nil, nil, job.Refusef("run a newer runner", "secret %s came without its version or digest", c.Secret)
		}
		t.Keys[key], t.data[key] = source{Secret: c.Secret, Version: int(version), Digest: secret.Digest}, value
		byRef[t.ref()] = t
	}
	for _, t := range byRef {
		if t.size() > maxData {
			return nil, nil, job.Wrongf("copy some of them to another Secret", "%s would have %d bytes, and a Secret holds %d", t.ref().Address(), t.size(), maxData)
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b target) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	slices.Sort(without)
	return targets, slices.Compact(without), nil
}

func (t target) size() (bytes int) {
	for key, value := range t.data {
		bytes += len(key) + len(value)
	}
	return bytes
}

// takeValues reads the secrets that are copied from a state tree, and gives what templates
// of the order may read: all but their values. Values of other secrets are sealed.
func takeValues(raw json.RawMessage, copies []jobspec.SecretCopy) (map[string]kept, interpolate.State, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	unreadable := errors.New("the state tree of the order cannot be read") // the cause could quote a value
	var has struct {
		Secrets map[string]json.RawMessage `json:"secrets"`
	}
	tree, err := job.Decode(raw)
	root, isObject := tree.(map[string]any)
	if err != nil || !isObject || json.Unmarshal(raw, &has) != nil {
		return nil, nil, unreadable
	}
	secrets := map[string]kept{}
	for _, c := range copies {
		text, known := has.Secrets[c.Secret]
		if !known {
			continue
		}
		var secret kept
		if json.Unmarshal(text, &secret) != nil {
			return nil, nil, unreadable
		}
		secrets[c.Secret] = secret
	}
	all, _ := root["secrets"].(map[string]any)
	for _, one := range all {
		if one, ok := one.(map[string]any); ok {
			delete(one, "value")
		}
	}
	return secrets, interpolate.NewState(root), nil
}

// place renders where a copy goes.
func place(j *job.Job, state interpolate.State, c jobspec.SecretCopy) (target, string, error) {
	render := func(what, text string) (string, error) {
		out, err := interpolate.Render(text, state, interpolate.Options{Now: j.StartedAt, File: "the " + what + " of a copy of secret " + c.Secret})
		if err != nil {
			return "", job.Wrongf("correct it in the app folder; it cannot have the value of a secret in it", "%v", err)
		}
		return strings.TrimSpace(out), nil
	}
	namespace, err := render("namespace", c.Namespace)
	if err != nil {
		return target{}, "", err
	}
	name, err := render("name", c.Name)
	if err != nil {
		return target{}, "", err
	}
	key, err := render("key", c.Key)
	if err != nil {
		return target{}, "", err
	}
	namespace = kube.NamespaceOf(j.Spec.InstallID, namespace)
	for _, check := range []struct {
		what, text string
		wrong      []string
	}{
		{"namespace", namespace, validation.IsDNS1123Label(namespace)},
		{"Secret", name, validation.IsDNS1123Subdomain(name)},
		{"key of a Secret", key, validation.IsConfigMapKey(key)},
	} {
		if len(check.wrong) > 0 {
			return target{}, "", job.Wrongf("correct it in the app folder", "secret %s: %q is no name for a %s: %s", c.Secret, check.text, check.what, check.wrong[0])
		}
	}
	return target{Namespace: namespace, Name: name, Keys: map[string]source{}, data: map[string][]byte{}}, key, nil
}

// copied lists what targets hold, for outputs.
func copied(targets []target) []jobspec.Copied {
	list := []jobspec.Copied{}
	for _, t := range targets {
		for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
			s := t.Keys[key]
			list = append(list, jobspec.Copied{Secret: s.Secret, Version: s.Version, Digest: s.Digest, Namespace: t.Namespace, Name: t.Name, Key: key})
		}
	}
	return list
}
