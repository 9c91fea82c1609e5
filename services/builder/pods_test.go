package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/builder/internal/fleet/pods"
	"github.com/berth-dev/berth/services/internal/setting"
)

func podSettings(t *testing.T, change func(*Pods)) Pods {
	t.Helper()
	var p Pods
	if err := setting.Read(&p, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	p.URL, p.Image = "https://front", "registry/builder@sha256:0"
	change(&p)
	return p
}

func TestPodSettings(t *testing.T) {
	t.Parallel()
	if err := podSettings(t, func(*Pods) {}).Validate(); err != nil {
		t.Errorf("the defaults with an address and an image: %v", err)
	}
	bad := podSettings(t, func(p *Pods) {
		*p = Pods{BuildSecrets: "all", BuildRegistries: "all", URL: "http://front", MaxAge: time.Second, MaxIdle: time.Hour, RequestCPU: "x", RequestMemory: "-1", MemoryLimit: "0", Disk: "1Gi"}
	})
	want := []string{
		"BERTH_BUILD_RUNNER_URL is plain http, want https",
		"BERTH_BUILD_RUNNER_NAMESPACE is not set",
		"BERTH_BUILD_RUNNER_IMAGE is not set: name an image with berth-runner and berth-engine, such as builder's own",
		"BERTH_BUILD_RUNNER_MAX_AGE is 1s, want 10s to 720h0m0s",
		`BERTH_BUILD_RUNNER_CPU is "x", want an amount such as 500m or 2Gi`,
		`BERTH_BUILD_RUNNER_MEMORY is "-1", want an amount such as 500m or 2Gi`,
		`BERTH_BUILD_RUNNER_MEMORY_LIMIT is "0", want an amount such as 500m or 2Gi`,
		`BERTH_BUILD_RUNNER_BUILD_SECRETS is "all": write {org} into it, for a Secret of each org's own`,
		`BERTH_BUILD_RUNNER_BUILD_REGISTRIES is "all": write {org} into it, for a Secret of each org's own`,
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("it is valid")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// The settings of pods do not matter while Build Runners are processes.
func TestKindOfBuildRunners(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"process": "", "pods": "BERTH_BUILD_RUNNER_IMAGE is not set", "pod": `BERTH_BUILD_RUNNERS is "pod", want process or pods`,
	} {
		var cfg Config
		if err := setting.Read(&cfg, func(string) string { return "" }); err != nil {
			t.Fatal(err)
		}
		cfg.BuildRunners, cfg.DSNFile, cfg.Data = kind, "dsn", "data"
		err := cfg.Validate()
		if want == "" && err != nil || want != "" && !strings.Contains(errors.Join(err, errors.New("nothing")).Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}

func TestPodsGetNoSecretOfOurs(t *testing.T) {
	t.Parallel()
	got, err := podEnv([]string{
		"PATH=/bin", "SSL_CERT_FILE=/x", "BERTH_DSN_FILE=/dsn", "BERTH_LIBEXEC=/x", "OTEL_EXPORTER_PROMETHEUS_PORT=9703", "BERTH_LOG_LEVEL=debug",
		"HTTPS_PROXY=http://proxy",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"BERTH_LOG_LEVEL=debug", "HTTPS_PROXY=http://proxy"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if _, err := podEnv([]string{"HTTPS_PROXY=http://me:word@proxy"}); err == nil || strings.Contains(err.Error(), "word") {
		t.Errorf("a proxy with a password: %v", err)
	}
}

// The BuildKit of pods is one over TLS, and no two orgs' by accident.
func TestBuildKitOfPods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, address, org, secret string
		want                       pods.BuildKit
		err                        string
	}{
		{name: "none"},
		{name: "one for each org", address: "tcp://bk-{org}.builds:1234", secret: "bk-{org}", want: pods.BuildKit{Address: "tcp://bk-{org}.builds:1234", Secret: "bk-{org}"}},
		{name: "one for one org", address: "tcp://bk:1234", org: "org_1", secret: "bk", want: pods.BuildKit{Address: "tcp://bk:1234", Org: "org_1", Secret: "bk"}},
		{name: "one for all", address: "tcp://bk:1234", secret: "bk", err: "names one BuildKit for all orgs"},
		{name: "a socket", address: "unix:///run/bk.sock", org: "org_1", secret: "bk", err: "want tcp://HOST:PORT"},
		{name: "no keys", address: "tcp://bk-{org}:1234", err: "BERTH_BUILD_RUNNER_BUILDKIT_TLS is not set"},
		{name: "keys of nothing", secret: "bk", err: "want tcp://HOST:PORT"},
	} {
		got, err := Pods{BuildKitSecret: tt.secret}.buildKit([]string{"BERTH_BUILDKIT_ADDR=" + tt.address, "BERTH_BUILDKIT_ORG=" + tt.org})
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q; (-want +got):\n%s", tt.name, err, tt.err, diff)
		}
	}
}
