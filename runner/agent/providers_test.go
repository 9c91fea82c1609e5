package agent_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/toolchain/toolchaintest"
)

const timeVersion = "0.14.2" // what dev/scripts/provider.sh builds

// networkMirror serves the real provider `time` as a network mirror does, and counts the
// archives that are fetched.
func networkMirror(t *testing.T) (server *httptest.Server, hash string, fetched *atomic.Int32) {
	t.Helper()
	folder := os.Getenv("BERTH_TEST_PROVIDER_MIRROR")
	if folder == "" {
		t.Skip("terraform: BERTH_TEST_PROVIDER_MIRROR names no folder with providers")
	}
	target := runtime.GOOS + "_" + runtime.GOARCH
	name := "terraform-provider-time_v" + timeVersion
	program, err := os.ReadFile(filepath.Join(folder, "registry.terraform.io/hashicorp/time", timeVersion, target, name))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	header := &zip.FileHeader{Name: name, Method: zip.Store}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	list := sha256.Sum256(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(program), name))
	hash = "h1:" + base64.StdEncoding.EncodeToString(list[:])
	fetched = new(atomic.Int32)
	mux := http.NewServeMux()
	const at = "GET /registry.terraform.io/hashicorp/time/"
	answer := func(path, text string) {
		mux.HandleFunc(at+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		})
	}
	answer("index.json", `{"versions":{"`+timeVersion+`":{}}}`)
	answer(timeVersion+".json", `{"archives":{"`+target+`":{"url":"time.zip","hashes":["`+hash+`"]}}}`)
	mux.HandleFunc(at+"time.zip", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // Terraform asks for the length first
			fetched.Add(1)
		}
		_, _ = w.Write(archive.Bytes())
	})
	server = httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server, hash, fetched
}

// A provider is fetched once per runner: the second module with it downloads nothing,
// and of a copy that somebody changed on disk nothing is run.
func TestProvidersAreFetchedOnce(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		path, version := terraformHere(t)
		mirror, hash, fetched := networkMirror(t)
		r, _ := newTerraformRunner(t, map[string]any{"terraform": path, "provider_mirror": mirror.URL})
		authority := filepath.Join(filepath.Dir(r.binary), "mirror", "ca.pem")
		toolchaintest.Write(t, authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mirror.Certificate().Raw}), 0o644)
		start := func(r *runner) {
			user := r.user()
			if f == byUsers {
				user = nil
			} else {
				r.yield()
			}
			cmd := r.process(processConfig{}, user)
			cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
			r.run(cmd)
		}
		again := func(r *runner) { // the modules are the test's still
			if f == byNamespaces {
				r.yield()
			}
		}
		deploy := func(start func(*runner), comment string) *change {
			t.Helper()
			r.plane.change(func() { r.plane.state = nil }) // it keeps one, and each change is of another resource
			module := t.TempDir()
			toolchaintest.Write(t, filepath.Join(module, "main.tf"), []byte(`# `+comment+`
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "time_offset" "a" {
  base_rfc3339 = "2020-02-12T06:36:13Z"
  offset_days  = 7
}
`), 0o600)
			lock := "provider \"registry.terraform.io/hashicorp/time\" {\n  version = \"" + timeVersion + "\"\n  hashes = [\n    \"" + hash + "\",\n  ]\n}\n"
			toolchaintest.Write(t, filepath.Join(module, ".terraform.lock.hcl"), []byte(lock), 0o600)
			layout, err := oci.Open(r.dir.Artifacts())
			if err != nil {
				t.Fatal(err)
			}
			packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
			if err != nil {
				t.Fatal(err)
			}
			return newChangeOn(t, r, start, func(s *jobspec.Spec) {
				s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: packed.Digest.String()}
				s.TerraformModule = &jobspec.TerraformModule{TerraformVersion: version}
			})
		}
		count := func(what string, want int32) {
			t.Helper()
			if got := fetched.Load(); got != want {
				t.Errorf("%s: the provider was fetched %d times, want %d", what, got, want)
			}
		}
		first := deploy(start, "first")
		count("the first plan", 1)
		if result := r.plane.result(t, first.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("apply: %+v", result)
		}
		count("its apply", 1)
		second := deploy(again, "second")
		count("the plan of another module", 1)
		if result := r.plane.result(t, second.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("apply of the second: %+v", result)
		}
		count("its apply", 1)

		kept, err := filepath.Glob(filepath.Join(r.dir.Tools(), "providers", "packages", "*", "terraform-provider-*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("kept: %v, %v", kept, err)
		}
		info, err := os.Stat(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		evil := append([]byte("#!/bin/sh\ntouch "+filepath.Join(r.dir.Install(), "evil")+"\n"), bytes.Repeat([]byte("#"), int(info.Size())-100)...)
		if err := os.WriteFile(kept[0], evil, 0o755); err != nil {
			t.Fatal(err)
		}
		third := deploy(again, "third")
		count("the plan after somebody changed the copy", 2)
		if result := r.plane.result(t, third.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
			t.Errorf("apply of the third: %+v", result)
		}
		if raw, err := os.ReadFile(kept[0]); err != nil || strings.HasPrefix(string(raw[:2]), "#!") {
			t.Errorf("the changed copy is still there: %v", err)
		}
		if _, err := os.Stat(filepath.Join(r.dir.Install(), "evil")); !os.IsNotExist(err) {
			t.Errorf("the changed copy was run: %v", err)
		}
	})
}
