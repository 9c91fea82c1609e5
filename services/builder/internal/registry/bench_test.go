package registry_test

import (
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
}
