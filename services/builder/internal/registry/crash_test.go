package registry_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// TestKilledInTheMiddleOfAPush kills the process of a registry with SIGKILL
// while it receives a blob, and goes on with another one on the same files.
func TestKilledInTheMiddleOfAPush(t *testing.T) { inEveryStorage(t, testKilledInTheMiddleOfAPush) }

func testKilledInTheMiddleOfAPush(t *testing.T, in place) {
	where, err := json.Marshal(in)
	must(t, err)
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), registryProcess+"="+string(where))
	out, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "listening ")
		if !strings.HasPrefix(lines.Text(), "listening ") {
			url = ""
		}
	}
	to := oci.Remote{
		Registry: strings.TrimPrefix(url, "http://"), Repository: "org_a/shop", PlainHTTP: true,
		Token: func(context.Context) (string, error) { return "any", nil },
	}
	complete, _ := pushBlob(t, to, 1<<20)

	// An artifact of which half of the blob arrives.
	l, data := openLayout(t), randomBytes(16<<20)
	broken, err := l.PutBlob(t.Context(), planType, "plan", data)
	must(t, err)
	to.Client = &http.Client{Transport: &killer{after: 12 << 20, kill: func() {
		must(t, victim.Process.Kill())
		_ = victim.Wait() // reports the signal
	}}}
	if _, err := to.Push(t.Context(), l, broken.String(), oci.TransferOptions{Tag: "broken"}); err == nil {
		t.Fatal("the push outlived the registry")
	}

	if in.S3 != nil && len(in.bucket.Parts(t)) == 0 {
		t.Error("the bucket had no part of it yet: too little was sent")
	}

	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	shop := f.remote("org_a/shop", token)
	if got, _ := f.do(t, "GET", "/v2/org_a/shop/blobs/"+digest.FromBytes(data).String(), token, nil); got.Status != 404 {
		t.Errorf("half a blob is served: %d", got.Status)
	}
	if got, _ := f.do(t, "GET", "/v2/org_a/shop/manifests/broken", token, nil); got.Status != 404 {
		t.Errorf("an artifact without its blobs is served: %d", got.Status)
	}
	must(t, shop.Pull(t.Context(), complete, openLayout(t), oci.TransferOptions{}))
	_, err = shop.Push(t.Context(), l, broken.String(), oci.TransferOptions{Tag: "broken"})
	must(t, err)
	must(t, shop.Pull(t.Context(), broken, openLayout(t), oci.TransferOptions{}))

	// What the killed upload left can be purged, and only that.
	reg, err := registry.New(in.config(anyone{}))
	must(t, err)
	if n, err := reg.PurgeUploads(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("purge of old uploads: got %d, %v; want none", n, err)
	}
	if n, err := reg.PurgeUploads(t.Context(), time.Now().Add(time.Hour)); n == 0 || err != nil {
		t.Errorf("purge: got %d, %v; want the upload that was killed", n, err)
	}
	if in.S3 != nil {
		if parts := in.bucket.Parts(t); len(parts) > 0 {
			t.Errorf("after the purge the bucket still has parts: %q", parts)
		}
	}
	must(t, shop.Pull(t.Context(), broken, openLayout(t), oci.TransferOptions{}))
	must(t, reg.Close())
}

// killer calls kill once, when so much of one request's body was sent.
type killer struct {
	after int64
	kill  func()
}

func (k *killer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength > k.after {
		req = req.Clone(req.Context())
		req.Body = cutBody{io.MultiReader(io.LimitReader(req.Body, k.after), &once{k.kill}, req.Body), req.Body}
	}
	return http.DefaultTransport.RoundTrip(req)
}

// once is an empty reader that calls do when its turn comes.
type once struct{ do func() }

func (o *once) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}

type anyone struct{}

func (anyone) Authenticate(context.Context, string) (registry.Grant, error) {
	return registry.Grant{OrgID: "org_a", Actions: all}, nil
}

// registryProcess says where the contents are that this process is to serve.
const registryProcess = "BERTH_TEST_REGISTRY"

// TestMain lets the executable of the tests also be the process that is killed.
func TestMain(m *testing.M) {
	where := os.Getenv(registryProcess)
	if where == "" {
		os.Exit(m.Run())
	}
	var in place
	if err := json.Unmarshal([]byte(where), &in); err != nil {
		panic(err)
	}
	reg, err := registry.New(in.config(anyone{}))
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(reg)
	fmt.Printf("listening %s\n", server.URL)
	select {} // until the process is killed
}

// TestConnectionLostInTheMiddleOfAPush is the same with only the client gone.
func TestConnectionLostInTheMiddleOfAPush(t *testing.T) {
	inEveryStorage(t, testConnectionLostInTheMiddleOfAPush)
}

func testConnectionLostInTheMiddleOfAPush(t *testing.T, in place) {
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	data := randomBytes(1 << 20)
	_, header := f.do(t, "POST", "/v2/org_a/shop/blobs/uploads/", token, nil)
	req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+header.Get("Location")+"&digest="+digest.FromBytes(data).String(),
		io.MultiReader(bytes.NewReader(data[:len(data)/2]), broken{}))
	must(t, err)
	req.SetBasicAuth("any", token)
	req.ContentLength = int64(len(data))
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
		resp.Body.Close()
		t.Fatalf("half a body got %s", resp.Status)
	}
	l := openLayout(t)
	dgst, err := l.PutBlob(t.Context(), planType, "plan", data)
	must(t, err)
	shop := f.remote("org_a/shop", token)
	_, err = shop.Push(t.Context(), l, dgst.String(), oci.TransferOptions{})
	must(t, err)
	must(t, shop.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}))
}
