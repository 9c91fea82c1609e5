package orders_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestScriptCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		script orders.Script
		want   string // part of the message; "" for none
	}{
		{"a script", orders.Script{Text: "echo hi", Env: map[string]string{"A_1": "x"}, Secret: []string{"TOKEN"}}, ""},
		{"an image by digest", orders.Script{Text: "x", Image: "docker.io/library/bash@sha256:" + strings.Repeat("a", 64)}, ""},
		{"an image that a template gives", orders.Script{Text: "x", Image: "{{ .nuon.components.tools.outputs.image.ref }}"}, ""},
		{"an image by tag", orders.Script{Text: "x", Image: "docker.io/library/bash:5"}, "image"},
		{"nothing to run", orders.Script{Text: " \n"}, "empty"},
		{"a program", orders.Script{Text: "\x7fELF\x00"}, "zero byte"},
		{"a variable with a bad name", orders.Script{Text: "x", Env: map[string]string{"A-B": "x"}}, `"A-B"`},
		{"a secret with a bad name", orders.Script{Text: "x", Secret: []string{"1A"}}, `"1A"`},
		{"a variable that is given twice", orders.Script{Text: "x", Env: map[string]string{"A": "x"}, Secret: []string{"A"}}, "twice"},
	} {
		err := tt.script.Check()
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestScriptOrder(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{
		KubernetesContexts: []appconfig.KubernetesContext{{Name: "edge", Component: "cluster"}},
		Components:         []appconfig.Component{{Name: "cluster"}},
	}
	s := orders.Script{Name: "fix", Text: "echo $TOKEN", Env: map[string]string{"A": "1"}, Secret: []string{"TOKEN"}, Sealed: []byte("sealed"), Context: "edge"}
	want := &jobspec.Action{
		Name: "script/fix", AdHoc: true, Cluster: &jobspec.Cluster{Context: "edge", Component: "cluster"},
		Steps: []jobspec.ActionStep{{Name: "script", InlineContents: "echo $TOKEN", EnvVars: map[string]string{"A": "1", "TOKEN": "{{ .nuon.script.env.TOKEN }}"}}},
	}
	if diff := cmp.Diff(want, s.Order(app)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if raw, _ := json.Marshal(s.Order(app)); strings.Contains(string(raw), "sealed") {
		t.Errorf("the order holds what is sealed at rest: %s", raw)
	}
	s.Context = ""
	if !s.Order(app).Steps[0].NoKubeConfig {
		t.Error("a script that asked for no cluster gets a kubeconfig")
	}
	if err := s.Fits(app); err != nil {
		t.Errorf("Fits: %v", err)
	}
	s.Context = "egde"
	if err := s.Fits(app); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "edge") {
		t.Errorf("Fits of a context that is not there: %v", err)
	}
}
