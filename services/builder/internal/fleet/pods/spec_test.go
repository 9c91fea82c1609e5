package pods

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A pod sees the keys of its own org's BuildKit, its own org's secrets, and nobody
// else's.
func TestWhatPodsAreGiven(t *testing.T) {
	t.Parallel()
	config := Config{CPU: "1", Memory: "1Gi", MemoryLimit: "1Gi", Disk: "1Gi"}
	type seen struct{ Volumes, Env map[string]string }
	of := func(change func(*Config), org string) seen {
		c := config
		change(&c)
		p := (&Fleet{config: c}).pod(org, "rnr_1", nil)
		s := seen{map[string]string{}, map[string]string{}}
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			for _, v := range p.Spec.Volumes {
				if v.Name == m.Name && v.Secret != nil && m.Name != "given" {
					s.Volumes[m.MountPath] = v.Secret.SecretName
				}
			}
			if m.Name != "data" && m.Name != "tmp" && !m.ReadOnly {
				t.Errorf("%s may be written to", m.MountPath)
			}
		}
		for _, e := range p.Spec.Containers[0].Env {
			if strings.HasPrefix(e.Name, "BERTH_BUILD") {
				s.Env[e.Name] = e.Value
			}
		}
		return s
	}
	everything := func(c *Config) {
		c.BuildKit = BuildKit{Address: "tcp://bk-{org}:1", Secret: "bk-{org}"}
		c.BuildSecrets, c.BuildRegistries = "s-{org}", "r-{org}"
	}
	alone := func(c *Config) { c.BuildKit = BuildKit{Address: "tcp://bk:1", Org: "org_1", Secret: "bk"} }
	nothing := seen{map[string]string{}, map[string]string{}}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		org    string
		want   seen
	}{
		{"nothing", func(*Config) {}, "org_1", nothing},
		{"everything", everything, "org_1", seen{
			map[string]string{"/run/berth/buildkit": "bk-org-1", "/run/berth/build-secrets/org_1/secrets": "s-org-1", "/run/berth/build-secrets/org_1/registries": "r-org-1"},
			map[string]string{"BERTH_BUILDKIT_ADDR": "tcp://bk-{org}:1", "BERTH_BUILDKIT_ORG": "org_1", "BERTH_BUILDKIT_TLS": "/run/berth/buildkit", "BERTH_BUILD_SECRETS": "/run/berth/build-secrets"},
		}},
		{"a BuildKit of its own", alone, "org_1", seen{
			map[string]string{"/run/berth/buildkit": "bk"},
			map[string]string{"BERTH_BUILDKIT_ADDR": "tcp://bk:1", "BERTH_BUILDKIT_ORG": "org_1", "BERTH_BUILDKIT_TLS": "/run/berth/buildkit"},
		}},
		{"a BuildKit of another org", alone, "org_2", nothing},
	} {
		if diff := cmp.Diff(tt.want, of(tt.change, tt.org)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	c := config
	everything(&c)
	for _, v := range (&Fleet{config: c}).pod("org_1", "rnr_1", nil).Spec.Volumes {
		if v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional || *v.Secret.DefaultMode&0o007 != 0) {
			t.Errorf("%s: a pod must start without it, and nobody else may read it", v.Name)
		}
		if v.Name == "build-registries" && v.Secret.Items[0].Key != corev1.DockerConfigJsonKey {
			t.Errorf("%s has %+v", v.Name, v.Secret.Items)
		}
	}
}
