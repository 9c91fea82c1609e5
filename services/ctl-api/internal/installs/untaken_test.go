package installs

import (
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
)

func TestUntaken(t *testing.T) {
	t.Parallel()
	values := func(v string) Inputs { return Inputs{Plain: Values{"greeting": v}} }
	overrides := func(v string) Overrides { return Overrides{"two": appconfig.InstallComponent{TFVars: v}} }
	for _, tt := range []struct {
		name string
		in   Present
		want Untaken
	}{
		{"never provisioned", Present{InputsVersion: 2, TogglesVersion: 1}, Untaken{}},
		{"all was taken", Present{InputsVersion: 2, Taken: Taken{Version: 2}}, Untaken{}},
		{"inputs set since", Present{InputsVersion: 2, Inputs: values("Ahoy"), Taken: Taken{Version: 1, Inputs: values("Hi")}}, Untaken{Inputs: true}},
		{"set to what they were", Present{InputsVersion: 3, Inputs: values("Hi"), Taken: Taken{Version: 1, Inputs: values("Hi")}}, Untaken{}},
		{"values of one component set since", Present{InputsVersion: 2, Overrides: overrides("b"), Taken: Taken{Version: 1, Overrides: overrides("a")}}, Untaken{Inputs: true}},
		{
			"and taken for that component",
			Present{InputsVersion: 2, Overrides: overrides("b"), Taken: Taken{Version: 1}, TakenAlone: map[string]Taken{"two": {Version: 2, Overrides: overrides("b")}}},
			Untaken{},
		},
		{"a toggle set since", Present{InputsVersion: 1, TogglesVersion: 1, Taken: Taken{Version: 1}}, Untaken{Toggles: true}},
	} {
		if got := untaken(tt.in); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
