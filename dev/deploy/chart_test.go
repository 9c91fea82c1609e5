package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// valueSets are ways to use the chart. Each says what differs from asProduction.
var valueSets = map[string][]string{
	"production": nil,
	"one of each, behind an Ingress, with a certificate of cert-manager": {
		"--set", "ctlApi.replicas=1,runnerApi.replicas=1,logIngest.replicas=1,front.replicas=1",
		"--set", "ingress.enabled=true,ingress.className=nginx,tls.issuer.name=letsencrypt",
		"--set-json", `ingress.annotations={"nginx.ingress.kubernetes.io/backend-protocol":"HTTPS"}`,
		"--set-json", `networkPolicy.front=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"ingress-nginx"}}}]`,
	},
	"a gateway that passes TLS on, Postgres of CloudNativePG": {
		"--set", "gateway.name=public,gateway.namespace=gateways,gateway.sectionName=tls",
		"--set", "database.ca.secret=berth-database-ca",
		"--set-json", `database.cidrs=[]`,
		"--set-json", `database.peers=[{"podSelector":{"matchLabels":{"cnpg.io/cluster":"berth-database"}}}]`,
	},
	"a gateway that ends TLS, a managed Postgres": {
		"--set", "gateway.name=public,gateway.terminate=true,gateway.caConfigMap=berth-front-ca,database.ca.configMap=rds-ca,database.ca.key=rds.pem",
	},
	"External Secrets": {"--set", "externalSecrets.store.name=vault"},
	"traces, a node port": {
		"--set", "front.service.type=NodePort,front.service.nodePort=30443,port=30443",
		"--set", "otelCollector.enabled=true,otelCollector.endpoint=https://traces.example.com",
		"--set-json", `otelCollector.egress=[{"to":[{"ipBlock":{"cidr":"10.20.1.0/24"}}],"ports":[{"port":443}]}]`,
	},
	"private sources": {"--set", "secrets.sourceCredentials=berth-source-credentials"},
	"a registry in a bucket": {
		"--set", "builder.replicas=2,builder.s3.bucket=example-berth-registry,builder.s3.endpoint=https://s3.example.com,builder.s3.pathStyle=true,builder.s3.cidrs={10.50.0.0/24}",
	},
	"a bucket by the identity of the pod": {
		"--set", `builder.s3.bucket=b-1,builder.s3.identity=pod,builder.serviceAccountAnnotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/berth`,
	},
	"Build Runners as pods": {
		"--set", "builder.buildRunners.image=registry.example.com/berth/builder@sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"--set-json", `builder.buildRunners.apiServer=[{"ports":[{"port":6443},{"port":16443}]}]`,
	},
	"Build Runners as pods, with BuildKit": {
		"--set", "builder.buildRunners.image=registry.example.com/berth/builder@sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"--set-json", `builder.buildRunners.apiServer=[{"ports":[{"port":6443},{"port":16443}]}]`,
		"--set-json", `builder.buildRunners.buildkitAddress="tcp://buildkit-{org}.buildkit.svc:1234"`,
	},
	"a choice of nodes, names and rights to connect": {
		"--set", "image.digests.ctl-api=sha256:0123456789012345678901234567890123456789012345678901234567890123,image.pullSecrets={pull}",
		"--set", "image.runner=registry.example.com/berth/runner@sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"--set", "labels.team=platform,podLabels.team=platform,podAnnotations.note=here,nodeSelector.disk=ssd,priorityClassName=high",
		"--set-json", `tolerations=[{"key":"berth","operator":"Exists"}]`,
		"--set-json", `builder.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}`,
		"--set-json", `builder.egress=[{"to":[{"ipBlock":{"cidr":"10.30.0.0/16"}}],"ports":[{"port":443}]}]`,
		"--set-string", "ctlApi.env.BERTH_REQUESTS_PER_MINUTE=100,migrate.env.BERTH_DB_CONNECTION_LIMIT=100,front.env.GOGC=50",
		"--set", "monitoring.enabled=false,builder.storage.existingClaim=registry,secrets.dsn.ctl=dsn-of-ctl",
	},
}

func TestChartKeepsTheRules(t *testing.T) {
	t.Parallel()
	for name, flags := range valueSets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := parse(renderChart(t, flags...))
			if err != nil {
				t.Fatal(err)
			}
			const least = 30 // fewer were not all read
			if len(objects) < least {
				t.Errorf("there are %d objects, want at least %d", len(objects), least)
			}
			for _, fault := range faults(objects) {
				t.Error(fault)
			}
		})
	}
}

// The chart makes the objects of deploy/k8s, as they are, but for what
// alike forgives.
func TestChartIsWhatKustomizeMakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, overlay string
		values        []string
		settings      map[string]string // that somebody with such an overlay adds to berth-settings
	}{
		{name: "overlays/production", overlay: "production"},
		{name: "overlays/production with the collector", overlay: with("production", "otel-collector"), values: []string{
			"--set", "otelCollector.enabled=true,otelCollector.endpoint=https://traces.example.com",
			"--set-json", `otelCollector.egress=[{"to":[{"ipBlock":{"cidr":"10.20.1.0/24"}}],"ports":[{"port":443}]}]`,
		}},
		{name: "an Ingress, a managed Postgres", overlay: with("production", "ingress", "cert-manager", "managed-postgres"), values: []string{
			"--set", "ingress.enabled=true,ingress.className=nginx,tls.issuer.name=letsencrypt,database.ca.secret=berth-database-ca,database.cidrs={10.40.0.0/24}",
			"--set-json", `ingress.annotations={"nginx.ingress.kubernetes.io/backend-protocol":"HTTPS","nginx.ingress.kubernetes.io/proxy-body-size":"0",
				"nginx.ingress.kubernetes.io/proxy-request-buffering":"off","nginx.ingress.kubernetes.io/proxy-buffering":"off","nginx.ingress.kubernetes.io/proxy-read-timeout":"3600"}`,
			"--set-json", `networkPolicy.front=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"ingress-nginx"}}}]`,
		}},
		{name: "private sources", overlay: with("production", "source-credentials"), values: valueSets["private sources"]},
		{name: "a registry in a bucket", overlay: with("production", "registry-s3"), values: valueSets["a registry in a bucket"]},
		{
			name: "Build Runners as pods", overlay: with("production", "build-runners"), values: valueSets["Build Runners as pods"],
			settings: map[string]string{
				"build-runner-url":   "https://berth.example.com",
				"build-runner-image": "registry.example.com/berth/builder@sha256:0123456789012345678901234567890123456789012345678901234567890123",
			},
		},
		{
			name: "Build Runners as pods, with BuildKit", overlay: with("production", "build-runners", "build-runners-buildkit"), values: valueSets["Build Runners as pods, with BuildKit"],
			settings: map[string]string{
				"buildkit-address":   "tcp://buildkit-{org}.buildkit.svc:1234",
				"build-runner-url":   "https://berth.example.com",
				"build-runner-image": "registry.example.com/berth/builder@sha256:0123456789012345678901234567890123456789012345678901234567890123",
			},
		},
		{name: "a gateway that passes TLS on, External Secrets", overlay: with("production", "gateway", "external-secrets"), values: []string{
			"--set", "gateway.name=public,gateway.namespace=gateways,externalSecrets.store.name=vault",
			"--set-json", `networkPolicy.front=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"gateways"}}}]`,
		}},
		{name: "a gateway that ends and opens TLS", overlay: with("production", "gateway-http"), values: []string{
			"--set", "gateway.name=public,gateway.namespace=gateways,gateway.terminate=true",
			"--set-json", `networkPolicy.front=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"gateways"}}}]`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := alike(t, render(t, tt.overlay))
			for key, value := range tt.settings {
				want["ConfigMap berth-settings"].(map[string]any)["data"].(map[string]any)[key] = value
			}
			got := alike(t, renderChart(t, tt.values...))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-kustomize +chart:\n%s", diff)
			}
		})
	}
}

// alike are the rendered objects by kind and name, without what differs
// between kustomize and the chart on purpose. This is the whole list:
//
//   - The Namespace: Helm keeps a release in a namespace that is there before,
//     and NOTES.txt says how to label it.
//   - The chart's labels, which Helm and people find its objects by.
//   - The names of ConfigMaps and of the Job. kustomize ends the former with a
//     hash of what is in them, which restarts pods; the chart annotates the pods
//     with it. The Job is deleted by hand before kustomize applies another; the
//     chart ends its name with a hash, and Helm deletes the one before.
//   - The volume's annotation: `helm uninstall` must not delete a registry.
//   - The order of variables, volumes and mounts, which means nothing here.
//   - Comments in the collector's configuration.
func alike(t *testing.T, rendered string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for _, document := range documents(rendered) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o["kind"] == "Namespace" {
			continue
		}
		metadata := o["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
			delete(labels, label)
		}
		for _, name := range hashed {
			metadata["name"] = name.ReplaceAllString(metadata["name"].(string), "$1")
		}
		forgive(t, o)
		objects[fmt.Sprint(o["kind"], " ", metadata["name"])] = o
	}
	return objects
}

// hashed are the names that end with a hash.
var hashed = []*regexp.Regexp{
	regexp.MustCompile(`^(berth-settings|otel-collector)-[a-z0-9]{10}$`),
	regexp.MustCompile(`^(migrate)-[a-f0-9]{8}$`),
}

// forgive changes what is in a value to what alike promises.
func forgive(t *testing.T, value any) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			forgive(t, element)
		}
	case map[string]any:
		if annotations, ok := value["annotations"].(map[string]any); ok {
			for _, name := range []string{"checksum/settings", "checksum/config", "helm.sh/resource-policy"} {
				delete(annotations, name)
			}
			if len(annotations) == 0 {
				delete(value, "annotations")
			}
		}
		for _, reference := range []string{"configMap", "configMapKeyRef"} {
			if of, ok := value[reference].(map[string]any); ok {
				of["name"] = hashed[0].ReplaceAllString(of["name"].(string), "$1")
			}
		}
		for list, key := range map[string]string{"env": "name", "volumes": "name", "volumeMounts": "mountPath"} {
			if elements, ok := value[list].([]any); ok {
				slices.SortFunc(elements, func(a, b any) int {
					return strings.Compare(fmt.Sprint(a.(map[string]any)[key]), fmt.Sprint(b.(map[string]any)[key]))
				})
			}
		}
		if text, ok := value["config.yaml"].(string); ok {
			var config any
			if err := yaml.Unmarshal([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
			value["config.yaml"] = config
		}
		for _, element := range value {
			forgive(t, element)
		}
	}
}

// A different version or value makes another Job, since one cannot be changed;
// the same values make the same.
func TestChartMigratesAgainWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	job := regexp.MustCompile(`name: (migrate-[0-9a-f]{8})`)
	name := func(flags ...string) string {
		found := job.FindStringSubmatch(renderChart(t, flags...))
		if found == nil {
			t.Fatalf("%s: there is no Job", flags)
		}
		return found[1]
	}
	first := name()
	if again := name("--set", "ctlApi.replicas=3"); again != first {
		t.Errorf("what is not of the Job made %s of %s", again, first)
	}
	for _, change := range []string{"image.tag=1.0.1", "migrate.run=2", "migrate.env.BERTH_DB_CONNECTION_LIMIT=100"} {
		if name("--set-string", change) == first {
			t.Errorf("%s leaves the Job %s as it was", change, first)
		}
	}
}
