package ownimage_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/ownimage"
)

const template = "{{ .nuon.components.tools.outputs.image.ref }}"

var (
	tools = "127.0.0.1:30500/components/tools@sha256:" + strings.Repeat("0f", 32)
	evil  = "127.0.0.1:30500/components/evil@sha256:" + strings.Repeat("66", 32)
)

func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

func action(image string) jobspec.Spec {
	return jobspec.Spec{
		Kind: jobspec.KindAction, Action: &jobspec.Action{Name: "a", Image: image, ImageDigest: digestOf(tools), File: "actions/a.toml", Inputs: map[string]string{"tag": "1"}},
		State: json.RawMessage(`{"components": {"tools": {"outputs": {"image": {"ref": "` + tools + `", "tag": "1"}}}}}`),
	}
}

func TestOfRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, image, want, fails string
	}{
		{name: "none"},
		{name: "of a component", image: template, want: tools},
		{name: "a literal", image: evil, want: evil},
		{name: "of parts", image: "127.0.0.1:30500/components/tools:{{ .nuon.components.tools.outputs.image.tag }}" + "@" + digestOf(tools), want: strings.Replace(tools, "@", ":1@", 1)},
		{name: "by tag", image: "127.0.0.1:30500/components/tools:{{ .action.inputs.tag }}", fails: "not named by host and digest"},
		{name: "what is not there", image: "{{ .nuon.components.toolz.outputs.image.ref }}", fails: "actions/a.toml: image"},
		{name: "nothing", image: `{{ if eq .nuon.components.tools.outputs.image.tag "2" }}x{{ end }}`, fails: `""`},
		{name: "without an end", image: `{{ range until 100000 }}{{ range until 100000 }}{{ $.nuon.components }}{{ end }}{{ end }}`, fails: "image"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := ownimage.OfRun(action(tc.image), time.Unix(0, 0))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%q, %v, want an error with %q", got, err, tc.fails)
				}
				return
			}
			if got != tc.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// A control plane that says in the state which image a component has cannot have an
// accepted check run in another one.
func TestAttackImageOfTheState(t *testing.T) {
	t.Parallel()
	spec := action(template)
	spec.State = json.RawMessage(strings.Replace(string(spec.State), tools, evil, 1))
	if got, err := ownimage.OfRun(spec, time.Unix(0, 0)); !errors.Is(err, ownimage.ErrNotAccepted) {
		t.Errorf("the image of the state: %q, %v", got, err)
	}
	spec = action("{{ .action.inputs.tag }}")
	spec.Action.Inputs["tag"], spec.Action.ImageDigest = evil, ""
	if got, err := ownimage.OfRun(spec, time.Unix(0, 0)); !errors.Is(err, ownimage.ErrNotAccepted) {
		t.Errorf("the image of an input: %q, %v", got, err)
	}
}

// Neither what was pinned nor what is planned can be swapped for another image.
func TestAttackAnotherImageThanPlanned(t *testing.T) {
	t.Parallel()
	pinned := func(image string) string {
		text, _ := json.Marshal(map[string]any{"format": 1, "image": image})
		return string(text)
	}
	for _, tc := range []struct {
		name, asked, recorded, pinned, want string
		differs                             bool
	}{
		{name: "as planned", asked: template, recorded: tools, pinned: pinned(tools), want: tools},
		{name: "none", pinned: `{"format": 1}`},
		{name: "another is pinned", asked: template, recorded: tools, pinned: pinned(evil), differs: true},
		{name: "none is pinned: the steps would run in the runner's", asked: template, recorded: tools, pinned: `{"format": 1}`, differs: true},
		{name: "one is pinned that nobody asked for", recorded: "", pinned: pinned(evil), differs: true},
		{name: "an older record has none", asked: template, recorded: "", pinned: pinned(tools), differs: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := ownimage.OfApply(action(tc.asked), tc.recorded, []byte(tc.pinned))
			if got != tc.want || errors.Is(err, ownimage.ErrDiffers) != tc.differs || (err != nil) != tc.differs {
				t.Errorf("%q, %v, want %q, differs %v", got, err, tc.want, tc.differs)
			}
		})
	}
	if got, err := ownimage.OfPlan(action(template), []byte(pinned("127.0.0.1:30500/components/tools:1"))); err == nil {
		t.Errorf("a tag was taken from a plan: %q", got)
	}
	if got, err := ownimage.OfPlan(action(template), []byte(`{"image": ["`+tools+`"]}`)); err == nil {
		t.Errorf("a list was taken from a plan: %q", got)
	}
	if got, err := ownimage.OfPlan(jobspec.Spec{Kind: "helm_chart"}, []byte(`{"image": "`+evil+`"}`)); got != "" || err != nil {
		t.Errorf("the plan of a chart: %q, %v", got, err)
	}
}
