package registry_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2"
	orasoci "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

const benchBytes = 64 << 20

// plain is an oras client of a repository, without this package's help.
func (f fixture) plain(b *testing.B, repository, token string) *remote.Repository {
	repo, err := remote.NewRepository(f.host + "/" + repository)
	must(b, err)
	repo.PlainHTTP = true
	repo.Client = &auth.Client{
		Cache: auth.NewCache(), Credential: auth.StaticCredential(f.host, auth.Credential{Username: "any", Password: token}),
	}
	return repo
}

// BenchmarkTransfer moves one artifact of 64 MiB by this package and by plain
// oras, to compare their MB/s.
func BenchmarkTransfer(b *testing.B) {
	f := start(b, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	src, err := oci.Open(b.TempDir())
	must(b, err)
	newArtifact := func() digest.Digest {
		dgst, err := src.PutBlob(b.Context(), planType, "plan", randomBytes(benchBytes))
		must(b, err)
		return dgst
	}
	shop := f.remote("org_a/shop", token)
	run := func(name string, prepare func() digest.Digest, move func(digest.Digest)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(benchBytes)
			for b.Loop() {
				b.StopTimer()
				dgst := prepare()
				b.StartTimer()
				move(dgst)
			}
		})
	}
	other := start(b, nil)
	otherToken := other.issue(registry.Grant{OrgID: "org_a", Actions: all})
	stored := newArtifact()
	_, err = shop.Push(b.Context(), src, stored.String(), oci.TransferOptions{})
	must(b, err)
	same := func() digest.Digest { return stored }

	run("push/berth", newArtifact, func(dgst digest.Digest) {
		_, err := shop.Push(b.Context(), src, dgst.String(), oci.TransferOptions{})
		must(b, err)
	})
	run("push/oras", newArtifact, func(dgst digest.Digest) {
		_, err := oras.Copy(b.Context(), src, dgst.String(), f.plain(b, "org_a/shop", token), "", oras.DefaultCopyOptions)
		must(b, err)
	})
	run("pull/berth", same, func(dgst digest.Digest) {
		dst, err := oci.Open(b.TempDir())
		must(b, err)
		must(b, shop.Pull(b.Context(), dgst, dst, oci.TransferOptions{}))
	})
	run("pull/oras", same, func(dgst digest.Digest) {
		dst, err := orasoci.New(b.TempDir())
		must(b, err)
		_, err = oras.Copy(b.Context(), f.plain(b, "org_a/shop", token), dgst.String(), dst, "", oras.DefaultCopyOptions)
		must(b, err)
	})

	n := 0
	elsewhere := func() string { n++; return fmt.Sprintf("org_a/copy-%d", n) }
	run("copy/berth", push(b, shop, src, newArtifact), func(dgst digest.Digest) {
		_, err := shop.Copy(b.Context(), dgst, other.remote(elsewhere(), otherToken), oci.TransferOptions{})
		must(b, err)
	})
	run("copy/oras", push(b, shop, src, newArtifact), func(dgst digest.Digest) {
		_, err := oras.Copy(b.Context(), f.plain(b, "org_a/shop", token), dgst.String(), other.plain(b, elsewhere(), otherToken), "", oras.DefaultCopyOptions)
		must(b, err)
	})
	tools := toolsOf(b, map[string]string{f.host: token, other.host: otherToken})
	for _, tool := range tools {
		run("pull/"+tool.name, same, func(dgst digest.Digest) {
			tool.run(b, tool.pull(f.host+"/org_a/shop@"+dgst.String(), b.TempDir()))
		})
	}
	for _, tool := range tools {
		run("copy/"+tool.name, push(b, shop, src, newArtifact), func(dgst digest.Digest) {
			tool.run(b, tool.copy(f.host+"/org_a/shop@"+dgst.String(), other.host+"/"+elsewhere()+":x"))
		})
	}
}

// push makes artifacts that a registry has.
func push(b *testing.B, to oci.Remote, src *oci.Layout, next func() digest.Digest) func() digest.Digest {
	return func() digest.Digest {
		dgst := next()
		_, err := to.Push(b.Context(), src, dgst.String(), oci.TransferOptions{})
		must(b, err)
		return dgst
	}
}

// tool is a program of others; its start counts, which is some 10 ms.
type tool struct {
	name, path string
	env        []string
	pull, copy func(from, to string) []string
}

// toolsOf are those of crane, oras and skopeo that are in PATH, with the tokens.
func toolsOf(b *testing.B, tokens map[string]string) []tool {
	auths := map[string]any{}
	for host, token := range tokens {
		auths[host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("berth:" + token))}
	}
	raw, err := json.Marshal(map[string]any{"auths": auths})
	must(b, err)
	home := b.TempDir()
	must(b, os.WriteFile(filepath.Join(home, "config.json"), raw, 0o600))
	env := append(os.Environ(), "DOCKER_CONFIG="+home, "REGISTRY_AUTH_FILE="+filepath.Join(home, "config.json"), "HOME="+home)
	var found []tool
	for _, t := range []tool{
		{
			name: "crane", pull: func(from, to string) []string { return []string{"pull", "--insecure", "--format=oci", from, to} },
			copy: func(from, to string) []string { return []string{"copy", "--insecure", from, to} },
		},
		{
			name: "oras-cli",
			pull: func(from, to string) []string {
				return []string{"copy", "--from-plain-http", "--to-oci-layout", from, to + ":x"}
			},
			copy: func(from, to string) []string {
				return []string{"copy", "--from-plain-http", "--to-plain-http", from, to}
			},
		},
		{
			name: "skopeo",
			pull: func(from, to string) []string {
				return []string{"copy", "--src-tls-verify=false", "--insecure-policy", "docker://" + from, "oci:" + to + ":x"}
			},
			copy: func(from, to string) []string {
				return []string{"copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--insecure-policy", "docker://" + from, "docker://" + to}
			},
		},
	} {
		path, err := exec.LookPath(strings.TrimSuffix(t.name, "-cli"))
		if err != nil {
			b.Logf("%s is not in PATH and not compared", t.name)
			continue
		}
		t.path, t.env = path, env
		found = append(found, t)
	}
	return found
}

func (t tool) run(b *testing.B, args []string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), t.path, args...)
	cmd.Env = t.env
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Skipf("%s: %v: %s", t.name, err, out)
	}
}
