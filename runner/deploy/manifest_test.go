package deploy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/deploy"
)

var update = flag.Bool("update", false, "rewrite golden files")

func options(t *testing.T) deploy.Options {
	t.Helper()
	code := enrolcode.Code{
		URL: "https://berth.example.com", OneHost: true, InstallID: "ins_1", Install: "acme",
		EnrolmentSecret: "ben_example", PhoneHomeSecret: "bph_example",
		DispatchKeys: []enrolcode.Key{{KeyID: "key-1", PublicKey: "6kQ2m3m8xk3cI2w6tVJ2bq0m9C0yqk3zq6m8n1f4s2Y="}},
		ExpiresAt:    time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	text, err := code.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return deploy.Options{CodeText: text, Code: code, Image: "registry.example.com/berth/runner:1.0@sha256:" + strings.Repeat("0f", 32)}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*deploy.Options){
		"default": func(*deploy.Options) {},
		"everything": func(o *deploy.Options) {
			o.Namespace, o.Namespaces = "runner-of-acme", []string{"shop", "shop-jobs"}
			o.PullPolicy, o.StorageClass, o.Size, o.RegistryNodePort = "Always", "fast", "50Gi", 31000
			o.Contexts = "clusters-of-acme"
			o.Proxy, o.NoProxy = "http://user:pa$$@proxy.example.com:3128", "10.0.0.0/8"
		},
		"app": func(o *deploy.Options) {
			o.Rights, o.Permissions, o.NoRelay = deploy.RightsApp, appPermissions(), true
			o.AgentCPU, o.AgentMemory, o.EngineCPU, o.EngineMemory = "500m", "512Mi", 1500, 1<<30
			o.AppPodSecurity = deploy.LevelRestricted
		},
		"trial":   func(o *deploy.Options) { o.Rights, o.HostPath = deploy.RightsCluster, "/var/lib/berth-acme" },
		"process": func(o *deploy.Options) { o.Engines = deploy.EnginesProcess },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			change(&o)
			got, err := deploy.Manifest(o)
			if err != nil {
				t.Fatal(err)
			}
			objects(t, got) // it is what a cluster can read
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("manifest (-want +got), -update rewrites it:\n%s", diff)
			}
		})
	}
}

// appPermissions are those of an app with a chart and a kind of its own.
func appPermissions() *permissions.List {
	return &permissions.List{Namespaces: []string{"shop"}, Rules: []permissions.Rule{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"create"}, Reasons: []string{"install"}, From: []string{"boats"}},
		{Namespace: "shop", Group: "apps", Resource: "deployments", Verbs: []string{"create", "delete", "get", "patch"}, Reasons: []string{"install"}, From: []string{"web"}},
	}}
}

// Under --rights app engines may do what is on the list and nothing else, and
// nothing on it can widen itself.
func TestRightsOfAnApp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*deploy.Options){
		"no list":                 func(o *deploy.Options) { o.Permissions = nil },
		"a list for other rights": func(o *deploy.Options) { o.Rights = deploy.RightsCluster },
		"escalate":                func(o *deploy.Options) { o.Permissions.Rules[1].Verbs = []string{"escalate"} },
		"everything": func(o *deploy.Options) {
			o.Permissions.Rules[1] = permissions.Rule{Group: "*", Resource: "*", Verbs: []string{"*"}}
		},
		"the runner's namespace": func(o *deploy.Options) { o.Permissions.Rules[1].Namespace = "berth-acme" },
		"that of the relays":     func(o *deploy.Options) { o.Permissions.Rules[1].Namespace = "berth-acme-relay" },
	} {
		o := options(t)
		o.Rights, o.Permissions = deploy.RightsApp, appPermissions()
		change(&o)
		if text, err := deploy.Manifest(o); err == nil {
			t.Errorf("%s was taken:\n%s", name, text)
		}
	}
	o := options(t)
	o.Rights, o.Permissions, o.Allow = deploy.RightsApp, appPermissions(), []string{"bind"}
	o.Permissions.Rules[1].Verbs = []string{"bind"}
	if _, err := deploy.Manifest(o); err != nil {
		t.Errorf("bind that the customer agreed to: %v", err)
	}
}

// The customer's kubeconfigs are the agent's: no other container has them, and nobody
// can write there. The Secret may come later.
func TestContexts(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Contexts = "clusters-of-acme"
	text, err := deploy.Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	var mounted []any
	for _, x := range objects(t, text) {
		pod, _ := x.at("spec", "template", "spec").(map[string]any)
		for _, key := range []string{"initContainers", "containers"} {
			all, _ := pod[key].([]any)
			for _, c := range all {
				container := object(c.(map[string]any))
				mounts, _ := container.at("volumeMounts").([]any)
				for _, m := range mounts {
					if mount := object(m.(map[string]any)); mount.at("name") == "contexts" {
						mounted = append(mounted, container.at("name"), mount.at("mountPath"), mount.at("readOnly"))
					}
				}
			}
		}
	}
	if diff := cmp.Diff([]any{"agent", "/run/berth/contexts", true}, mounted); diff != "" {
		t.Errorf("who has the kubeconfigs (-want +got):\n%s", diff)
	}
	if got := string(text); !strings.Contains(got, `secret: {secretName: "clusters-of-acme", defaultMode: 0400, optional: true}`) || !strings.Contains(got, "{name: BERTH_CONTEXTS, value: /run/berth/contexts}") {
		t.Errorf("the manifest does not mount the Secret:\n%s", got)
	}
}

// Every namespace says its level, every image its digest, every container its
// limits; only the namespace of the relays is privileged, unless more was asked
// for.
func TestHardened(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*deploy.Options)
		levels map[string]any
	}{
		"default":  {func(*deploy.Options) {}, map[string]any{"berth-acme": "restricted", "berth-acme-relay": "privileged", "ins-1": "baseline"}},
		"no relay": {func(o *deploy.Options) { o.NoRelay = true }, map[string]any{"berth-acme": "restricted", "ins-1": "baseline"}},
		"process":  {func(o *deploy.Options) { o.Engines = deploy.EnginesProcess }, map[string]any{"berth-acme": "baseline", "berth-acme-relay": "privileged", "ins-1": "baseline"}},
		"trial":    {func(o *deploy.Options) { o.HostPath = "/data" }, map[string]any{"berth-acme": "privileged", "berth-acme-relay": "privileged", "ins-1": "baseline"}},
	} {
		o := options(t)
		tc.change(&o)
		text, err := deploy.Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		levels := map[string]any{}
		for _, x := range objects(t, text) {
			if x.at("kind") == "Namespace" {
				levels[x.at("metadata", "name").(string)] = x.at("metadata", "labels", "pod-security.kubernetes.io/enforce")
			}
			pod, _ := x.at("spec", "template", "spec").(map[string]any)
			for _, key := range []string{"initContainers", "containers"} {
				all, _ := pod[key].([]any)
				for _, c := range all {
					container := object(c.(map[string]any))
					if err := enrolcode.CheckImage(container.at("image").(string)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					for _, path := range [][]string{{"limits", "cpu"}, {"limits", "memory"}, {"requests", "cpu"}, {"requests", "memory"}} {
						if container.at("resources", path[0], path[1]) == nil {
							t.Errorf("%s: %v has no %v", name, container.at("name"), path)
						}
					}
				}
			}
		}
		if diff := cmp.Diff(tc.levels, levels); diff != "" {
			t.Errorf("%s: levels (-want +got):\n%s", name, diff)
		}
	}
}

// object is one document of a manifest.
type object map[string]any

func (o object) at(path ...string) any {
	var now any = map[string]any(o)
	for _, key := range path {
		m, _ := now.(map[string]any)
		now = m[key]
	}
	return now
}

func objects(t *testing.T, manifest []byte) []object {
	t.Helper()
	var all []object
	seen := map[string]bool{}
	for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
		var o object
		if err := yaml.UnmarshalStrict(text, &o); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		name, _ := o.at("metadata", "name").(string)
		kind, _ := o.at("kind").(string)
		namespace, _ := o.at("metadata", "namespace").(string)
		if name == "" || kind == "" || o.at("apiVersion") == nil {
			t.Fatalf("no object:\n%s", text)
		}
		if key := kind + "/" + namespace + "/" + name; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
		all = append(all, o)
	}
	return all
}

// The agent's account can do three things with named objects of its own, and
// the engine's is not bound to anything in the runner's namespace.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Namespaces, o.Engines = []string{"shop"}, deploy.EnginesProcess // for Jobs see TestRightsForJobs
	text, err := deploy.Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range objects(t, text) {
		kind, _ := x.at("kind").(string)
		namespace, _ := x.at("metadata", "namespace").(string)
		switch {
		case strings.HasPrefix(kind, "ClusterRole"):
			t.Errorf("a %s without --rights cluster", kind)
		case kind == "Role" && namespace == "berth-acme":
			for _, r := range x.at("rules").([]any) {
				rule, _ := r.(map[string]any)
				verbs, _ := rule["verbs"].([]any)
				if rule["resourceNames"] == nil || slices.Contains(verbs, any("*")) {
					t.Errorf("the agent may too much: %v", rule)
				}
			}
		case kind == "RoleBinding":
			subject, _ := x.at("subjects").([]any)[0].(map[string]any)
			if want := map[string]any{"berth-acme": "berth-runner", "shop": "berth-engine"}[namespace]; subject["name"] != want {
				t.Errorf("in %s the account %v is bound, want %v", namespace, subject["name"], want)
			}
		}
	}
}

// With engines as Jobs, the default, the agent may make and end what runs in its
// own namespace. Its engines still may nothing there.
func TestRightsForJobs(t *testing.T) {
	t.Parallel()
	o := options(t)
	text, err := deploy.Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]any{}
	for _, x := range objects(t, text) {
		kind, _ := x.at("kind").(string)
		namespace, _ := x.at("metadata", "namespace").(string)
		if strings.HasPrefix(kind, "ClusterRole") {
			t.Errorf("a %s for Jobs", kind)
		}
		if kind != "Role" || namespace != "berth-acme" {
			continue
		}
		for _, r := range x.at("rules").([]any) {
			rule, _ := r.(map[string]any)
			if resources, _ := rule["resources"].([]any); rule["resourceNames"] == nil {
				got[resources[0].(string)], _ = rule["verbs"].([]any)
			}
		}
	}
	want := map[string][]any{"jobs": {"create", "get", "delete"}, "pods": {"get", "list", "watch", "delete"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the agent may do with all objects of a kind (-want +got):\n%s", diff)
	}
}

// The agent of the default has no power of root. As root it has no more than it
// needs to give folders away; only engines in its own container take more.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		engines, level string
		want           any
	}{
		{},
		{level: deploy.LevelBaseline, want: []any{"CHOWN", "DAC_OVERRIDE", "FOWNER"}},
		{engines: deploy.EnginesProcess, want: []any{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}},
	} {
		o := options(t)
		o.Engines, o.PodSecurity = tc.engines, tc.level
		text, err := deploy.Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range objects(t, text) {
			if x.at("kind") != "Deployment" {
				continue
			}
			containers, _ := x.at("spec", "template", "spec", "containers").([]any)
			for _, c := range containers {
				container := object(c.(map[string]any))
				added := container.at("securityContext", "capabilities", "add")
				if container.at("name") == "agent" {
					if diff := cmp.Diff(tc.want, added); diff != "" {
						t.Errorf("--engines %q --pod-security %q (-want +got):\n%s", tc.engines, tc.level, diff)
					}
				} else if added != nil {
					t.Errorf("%v has %v", container.at("name"), added)
				}
			}
		}
	}
}

func TestAuthorities(t *testing.T) {
	t.Parallel()
	cert, key := authority(t)
	o := options(t)
	o.CA = cert
	text, err := deploy.Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, x := range objects(t, text) {
		if x.at("metadata", "name") == "berth-runner-ca" {
			found = x.at("data", "ca.crt") == cert
		}
	}
	if !found {
		t.Error("the authority did not come through as it is")
	}
	for name, text := range map[string]string{"a key next to it": cert + key, "no certificate": "hello", "a damaged one": strings.Replace(cert, "MII", "AAA", 1)} {
		o.CA = text
		if _, err := deploy.Manifest(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func authority(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*deploy.Options){
		"no image":                    func(o *deploy.Options) { o.Image = "" },
		"an image with a line break":  func(o *deploy.Options) { o.Image = "a\nb@sha256:" + strings.Repeat("0f", 32) },
		"an image by tag":             func(o *deploy.Options) { o.Image = "registry.example.com/berth/runner:1.0" },
		"a namespace that is none":    func(o *deploy.Options) { o.Namespace = "Berth Acme" },
		"engines next to the agent":   func(o *deploy.Options) { o.Namespace, o.Namespaces = "shop", []string{"shop"} },
		"unknown rights":              func(o *deploy.Options) { o.Rights = "all" },
		"engines that are nowhere":    func(o *deploy.Options) { o.Engines = "threads" },
		"a level that is none":        func(o *deploy.Options) { o.PodSecurity = "strict" },
		"restricted with processes":   func(o *deploy.Options) { o.PodSecurity, o.Engines = deploy.LevelRestricted, deploy.EnginesProcess },
		"baseline with a node's disk": func(o *deploy.Options) { o.PodSecurity, o.HostPath = deploy.LevelBaseline, "/data" },
		"memory without a unit":       func(o *deploy.Options) { o.AgentMemory = "512" },
		"a CPU that is none":          func(o *deploy.Options) { o.AgentCPU = "fast" },
		"engines without memory":      func(o *deploy.Options) { o.EngineMemory = 1024 },
		"a size without a unit":       func(o *deploy.Options) { o.Size = "10" },
		"the root of the node":        func(o *deploy.Options) { o.HostPath = "/" },
		"a path that climbs":          func(o *deploy.Options) { o.HostPath = "/var/../etc" },
		"two volumes":                 func(o *deploy.Options) { o.HostPath, o.StorageClass = "/data", "fast" },
		"a policy with a line break":  func(o *deploy.Options) { o.PullPolicy = "Always\nfoo: bar" },
		"a proxy that is no address":  func(o *deploy.Options) { o.Proxy = "proxy.example.com:3128" },
		"a port that is none":         func(o *deploy.Options) { o.RegistryNodePort = 70000 },
		"a Secret with a line break":  func(o *deploy.Options) { o.Contexts = "a\nb" },
		"the Secret with the code":    func(o *deploy.Options) { o.Contexts = "berth-runner-code" },
		"spaces in what needs commas": func(o *deploy.Options) { o.NoProxy = "a b" },
	} {
		o := options(t)
		change(&o)
		if text, err := deploy.Manifest(o); err == nil {
			t.Errorf("%s was taken:\n%s", name, text)
		}
	}
}
