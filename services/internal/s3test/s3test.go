// Package s3test gives tests a bucket of a real S3 server: versitygw on a folder,
// as a process of its own on loopback. dev/scripts/s3.sh builds it.
package s3test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Bucket is an empty bucket and the credentials for it.
type Bucket struct {
	Endpoint, Region, Name, AccessKey, SecretKey string

	root string
}

const (
	startTimeout = 30 * time.Second
	bucketName   = "registry"
)

// executable is BERTH_S3_SERVER, or what dev/scripts/s3.sh built here; "" when
// there is none.
func executable() string {
	if named := os.Getenv("BERTH_S3_SERVER"); named != "" {
		return named
	}
	_, here, _, _ := runtime.Caller(0)
	built := filepath.Join(filepath.Dir(here), "..", "..", "..", ".bin", "tools", "versitygw")
	if _, err := os.Stat(built); err != nil {
		return ""
	}
	return built
}

// New starts a server for this test alone, which ends with it. Without the
// executable the test is skipped.
func New(t testing.TB) Bucket {
	t.Helper()
	server := executable()
	if server == "" {
		t.Skip("s3: there is no versitygw; dev/scripts/s3.sh build makes one")
	}
	b := Bucket{Region: "us-east-1", Name: bucketName, AccessKey: "berth-test", SecretKey: "secret-of-the-tests", root: t.TempDir()}
	for _, dir := range []string{filepath.Join("buckets", bucketName), "about"} {
		if err := os.MkdirAll(filepath.Join(b.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	b.Endpoint = "http://" + address
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), server, "--port", address, "--keep-alive", "--quiet", "--health", "/health", "--iam-dir", t.TempDir(),
		"posix", "--sidecar", filepath.Join(b.root, "about"), filepath.Join(b.root, "buckets"))
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + b.AccessKey, "ROOT_SECRET_KEY=" + b.SecretKey}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // by a signal, at the end of the test
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	deadline := time.Now().Add(startTimeout)
	for !b.answers(t) {
		select {
		case <-ended:
			t.Fatalf("the S3 server ended: %s", &said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 server does not answer within %s", startTimeout)
		}
	}
	return b
}

func (b Bucket) answers(t testing.TB) bool {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.Endpoint+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Keys are the names of all objects that are in the bucket.
func (b Bucket) Keys(t testing.TB) []string {
	t.Helper()
	root := filepath.Join(b.root, "buckets", b.Name)
	return files(t, root, func(name string) bool { return name == filepath.Join(root, partsDir) })
}

// Parts are the files of uploads to the bucket that are no objects yet.
func (b Bucket) Parts(t testing.TB) []string {
	t.Helper()
	root := filepath.Join(b.root, "buckets", b.Name, partsDir)
	if _, err := os.Stat(root); err != nil {
		return nil
	}
	return files(t, root, func(string) bool { return false })
}

// partsDir is where the server keeps them, in the folder of the bucket.
const partsDir = ".sgwtmp"

func files(t testing.TB, root string, skip func(string) bool) (names []string) {
	t.Helper()
	err := filepath.Walk(root, func(name string, info os.FileInfo, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // it goes on serving
		case err != nil:
			return err
		case info.IsDir() && skip(name):
			return filepath.SkipDir
		case info.Mode().IsRegular():
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			names = append(names, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}
