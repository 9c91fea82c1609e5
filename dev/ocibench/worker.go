package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2"
	orasoci "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/pkg/oci"
)

const (
	opPush = "push" // of the image in Dir to Repository at To
	opPull = "pull" // from Repository at From into Dir, which is empty
	opCopy = "copy" // from one to the other
)

// task is one thing to do, on a line of its own.
type task struct {
	Op                   string
	Dir                  string
	From, To, Repository string
	Digest               digest.Digest
}

// done is what a worker answers.
type done struct {
	Problem   string
	Took, CPU time.Duration
}

// The registry of the benchmark takes any token.
const anyToken = "brg_any"

// work does tasks by one library until the end of in. The process stays, so what is
// measured is warm.
func work(library string, in io.Reader, out io.Writer) error {
	do, ok := map[string]func(context.Context, task) error{"berth": byBerth, "oras-go": byORAS, "ggcr": byGGCR}[library]
	if !ok {
		return fmt.Errorf("no library %q", library)
	}
	tasks, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var t task
		if err := tasks.Decode(&t); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		runtime.GC() // what is left of the task before is nobody's now
		var answer done
		began, cpu := time.Now(), processorTime()
		if err := do(context.Background(), t); err != nil {
			answer.Problem = err.Error()
		}
		answer.Took, answer.CPU = time.Since(began), processorTime()-cpu
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func byBerth(ctx context.Context, t task) error {
	at := func(host string) oci.Remote {
		return oci.Remote{Registry: host, Repository: t.Repository, PlainHTTP: true, Token: func(context.Context) (string, error) { return anyToken, nil }}
	}
	switch t.Op {
	case opCopy:
		_, err := at(t.From).Copy(ctx, t.Digest, at(t.To), oci.TransferOptions{Tag: imageTag})
		return err
	case opPull:
		dst, err := oci.Open(t.Dir)
		if err != nil {
			return err
		}
		return at(t.From).Pull(ctx, t.Digest, dst, oci.TransferOptions{})
	}
	src, err := oci.Open(t.Dir)
	if err != nil {
		return err
	}
	_, err = at(t.To).Push(ctx, src, t.Digest.String(), oci.TransferOptions{Tag: imageTag})
	return err
}

func byORAS(ctx context.Context, t task) error {
	at := func(host string) (*remote.Repository, error) {
		repo, err := remote.NewRepository(host + "/" + t.Repository)
		if err != nil {
			return nil, err
		}
		repo.PlainHTTP = true
		repo.Client = &auth.Client{Cache: auth.NewCache(), Credential: auth.StaticCredential(host, auth.Credential{Username: "any", Password: anyToken})}
		return repo, nil
	}
	var src oras.ReadOnlyTarget
	var dst oras.Target
	var err error
	if t.Op == opPush {
		src, err = orasoci.New(t.Dir)
	} else {
		src, err = at(t.From)
	}
	if err != nil {
		return err
	}
	if t.Op == opPull {
		dst, err = orasoci.New(t.Dir)
	} else {
		dst, err = at(t.To)
	}
	if err != nil {
		return err
	}
	_, err = oras.Copy(ctx, src, t.Digest.String(), dst, imageTag, oras.DefaultCopyOptions)
	return err
}

func byGGCR(ctx context.Context, t task) error {
	options := []ggcr.Option{ggcr.WithContext(ctx), ggcr.WithAuth(&authn.Basic{Username: "any", Password: anyToken})}
	var img v1.Image
	if t.Op == opPush {
		path, err := layout.FromPath(t.Dir)
		if err != nil {
			return err
		}
		if img, err = path.Image(v1.Hash{Algorithm: t.Digest.Algorithm().String(), Hex: t.Digest.Encoded()}); err != nil {
			return err
		}
	} else {
		ref, err := name.NewDigest(t.From+"/"+t.Repository+"@"+t.Digest.String(), name.Insecure)
		if err != nil {
			return err
		}
		if img, err = ggcr.Image(ref, options...); err != nil {
			return err
		}
	}
	if t.Op == opPull {
		path, err := layout.Write(t.Dir, empty.Index)
		if err != nil {
			return err
		}
		return path.AppendImage(img)
	}
	tag, err := name.NewTag(t.To+"/"+t.Repository+":"+imageTag, name.Insecure)
	if err != nil {
		return err
	}
	return ggcr.Write(tag, img, options...)
}
