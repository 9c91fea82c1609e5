package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTree(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		{Typeflag: tar.TypeReg, Name: "./bin/su", Mode: 0o4777, Uid: 1000, Uname: "somebody", ModTime: time.Now()},
		{Typeflag: tar.TypeLink, Name: "./bin/again", Linkname: "./bin/su"},
		{Typeflag: tar.TypeSymlink, Name: "./bin/sh", Linkname: "su"},
		{Typeflag: tar.TypeReg, Name: "./usr/share/man/su.1", Mode: 0o644},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tree := Tree{}
	if err := tree.Unpack(&packed, wanted); err != nil {
		t.Fatal(err)
	}
	tree.File("etc/deep/file", []byte("text"))

	when := time.Unix(1_700_000_000, 0)
	var out bytes.Buffer
	if err := tree.write(&out, when); err != nil {
		t.Fatal(err)
	}
	var got []string
	for in := tar.NewReader(&out); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(when) {
			t.Errorf("%s: owner %d:%d %q, time %s; want root's, %s", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime, when)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname)
	}
	want := []string{
		"drwxr-xr-x bin/ ",
		"-rwxr-xr-x bin/again ", // without setuid, and nobody but root may write
		"Lrwxrwxrwx bin/sh su",
		"-rwxr-xr-x bin/su ",
		"drwxr-xr-x etc/ ",
		"drwxr-xr-x etc/deep/ ",
		"-rw-r--r-- etc/deep/file ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestRootsAreAuthorities(t *testing.T) {
	t.Parallel()
	if !x509.NewCertPool().AppendCertsFromPEM(Roots()) {
		t.Fatal("no certificate in them")
	}
	if n := bytes.Count(Roots(), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("%d authorities, want those of Mozilla, more than 100", n)
	}
}
