package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// scraped are the services with the port of their metrics.
var scraped = map[string]int{"ctl-api": 9700, "runner-api": 9701, "log-ingest": 9702, "builder": 9703}

// exposure is what the rules of metrics are about.
type exposure struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Env []struct {
						Name  string `json:"name"`
						Value string `json:"value"`
					} `json:"env"`
					Ports []struct {
						Name          string `json:"name"`
						ContainerPort int    `json:"containerPort"`
					} `json:"ports"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
		PodSelector any `json:"podSelector"`
		Ingress     []struct {
			From  any `json:"from"`
			Ports []struct {
				Port any `json:"port"`
			} `json:"ports"`
		} `json:"ingress"`
		Ports []struct {
			Port       any `json:"port"`
			TargetPort any `json:"targetPort"`
		} `json:"ports"`
	} `json:"spec"`
}

// The port in the environment is the one that is declared; one policy opens it,
// for namespaces with the label alone, and no Service leads to it.
func TestMetricsAreForMonitoringAlone(t *testing.T) {
	t.Parallel()
	listens, declared, opened := map[string]string{}, map[string]int{}, map[string]string{}
	for _, document := range documents(render(t, "production")) {
		var o exposure
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				if e.Name == "OTEL_EXPORTER_PROMETHEUS_PORT" {
					listens[o.Metadata.Name] = e.Value
				}
			}
			for _, p := range c.Ports {
				if p.Name == "metrics" {
					declared[o.Metadata.Name] = p.ContainerPort
				}
			}
		}
		for _, rule := range o.Spec.Ingress {
			for _, p := range rule.Ports {
				if port := fmt.Sprint(p.Port); strings.HasPrefix(port, "97") {
					opened[port] += fmt.Sprint(o.Spec.PodSelector, " from ", rule.From)
				}
			}
		}
		for _, p := range o.Spec.Ports {
			if o.Kind == "Service" && (strings.HasPrefix(fmt.Sprint(p.Port), "97") || p.TargetPort == "metrics") {
				t.Errorf("the Service %s leads to metrics", o.Metadata.Name)
			}
		}
	}
	wantListens, wantOpened := map[string]string{}, map[string]string{}
	for name, port := range scraped {
		wantListens[name] = fmt.Sprint(port)
		wantOpened[fmt.Sprint(port)] = "map[matchLabels:map[app.kubernetes.io/name:" + name + "]] from [map[namespaceSelector:map[matchLabels:map[berth.dev/monitoring:true]]]]"
	}
	for what, diff := range map[string]string{
		"listens": cmp.Diff(wantListens, listens), "declared": cmp.Diff(scraped, declared), "opened": cmp.Diff(wantOpened, opened),
	} {
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// With the collector each service sends its traces there, and may.
func TestTracesGoToTheCollector(t *testing.T) {
	t.Parallel()
	rendered := render(t, with("production", "otel-collector"))
	objects, err := parse(rendered)
	if err != nil {
		t.Fatal(err)
	}
	var senders []string
	for _, o := range objects {
		sends := false
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				sends = sends || e.Name == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" && e.Value == "http://otel-collector:4318/v1/traces"
			}
		}
		if labelled := o.Spec.Template.Metadata.Labels["berth.dev/traces"] == "sender"; sends != labelled {
			t.Errorf("%s %s: sends traces is %t, may send is %t", o.Kind, o.Metadata.Name, sends, labelled)
		}
		if sends {
			senders = append(senders, o.Metadata.Name)
		}
	}
	slices.Sort(senders)
	if diff := cmp.Diff([]string{"builder", "ctl-api", "log-ingest", "runner-api"}, senders); diff != "" {
		t.Errorf("senders (-want +got):\n%s", diff)
	}
}
