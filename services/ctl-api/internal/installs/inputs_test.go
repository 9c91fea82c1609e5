package installs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestApply(t *testing.T) {
	t.Parallel()
	hello, low, high := "Hello", "1024", "49151"
	defined := []appconfig.Input{
		{Name: "greeting", Type: appconfig.InputString, Default: &hello, Required: true},
		{Name: "port", Type: appconfig.InputNumber},
		{Name: "region", Type: appconfig.InputString, Required: true},
		{Name: "api_key", Type: appconfig.InputString, Sensitive: true},
		{Name: "pin", Type: appconfig.InputNumber, Sensitive: true},
	}
	tests := []struct {
		name   string
		now    Inputs
		change Change
		want   Inputs
		faults []fault.FieldError
		bounds bool // the port and the greeting have them
	}{
		{
			name:   "defaults are not stored, sensitive values are kept apart",
			change: Change{Set: Values{"region": "eu", "api_key": "s3cret"}},
			want:   Inputs{Plain: Values{"region": "eu"}, Sensitive: Values{"api_key": "s3cret"}},
		},
		{
			name:   "what is not named stays",
			now:    Inputs{Plain: Values{"region": "eu", "port": "80"}, Sensitive: Values{"api_key": "s3cret"}},
			change: Change{Set: Values{"port": "81"}},
			want:   Inputs{Plain: Values{"region": "eu", "port": "81"}, Sensitive: Values{"api_key": "s3cret"}},
		},
		{
			name:   "unset goes back to the default",
			now:    Inputs{Plain: Values{"region": "eu", "greeting": "Ahoy"}},
			change: Change{Unset: []string{"greeting"}},
			want:   Inputs{Plain: Values{"region": "eu"}, Sensitive: Values{}},
		},
		{
			name: "what the app no longer defines is dropped",
			now:  Inputs{Plain: Values{"region": "eu", "old": "x"}},
			want: Inputs{Plain: Values{"region": "eu"}, Sensitive: Values{}},
		},
		{
			name:   "values keep to bounds and patterns",
			bounds: true,
			change: Change{Set: Values{"region": "eu-1", "port": "80", "greeting": "Hello!"}},
			faults: []fault.FieldError{
				{Pointer: "/inputs/greeting", Code: "value", Detail: `input "greeting" must match [A-Za-z]+`},
				{Pointer: "/inputs/port", Code: "value", Detail: `input "port" must be at least 1024`},
			},
		},
		{
			name:   "values above the greatest are refused",
			bounds: true,
			change: Change{Set: Values{"region": "eu", "port": "65536"}},
			faults: []fault.FieldError{{Pointer: "/inputs/port", Code: "value", Detail: `input "port" must be at most 49151`}},
		},
		{
			name:   "everything wrong is told at once, and no secret is",
			change: Change{Set: Values{"grating": "Ahoy", "pin": "hunter2"}, Unset: []string{"nothing"}},
			faults: []fault.FieldError{
				{Pointer: "/inputs/grating", Code: "unknown_input", Detail: `the app has no input "grating"; did you mean greeting?`},
				{Pointer: "/inputs/nothing", Code: "unknown_input", Detail: `the app has no input "nothing"`},
				{Pointer: "/inputs/pin", Code: "value", Detail: `input "pin" is not a valid number`},
				{Pointer: "/inputs/region", Code: "missing", Detail: `input "region" is required`},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defined := slices.Clone(defined)
			if tt.bounds {
				defined[0].Pattern, defined[1].Min, defined[1].Max = "[A-Za-z]+", &low, &high
			}
			got, err := Apply(defined, tt.now, tt.change)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
			var faults []fault.FieldError
			if err != nil {
				faults = fault.From(err).Errors
			}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
