package inits_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/runner/agent/inits"
)

func TestStore(t *testing.T) {
	t.Parallel()
	s := inits.Store{Dir: filepath.Join(t.TempDir(), "inits")}
	basis := inits.Basis{Artifact: "a", Terraform: "t", Engine: "e", Config: "c"}
	if got := s.Get("res_1", basis); got != nil {
		t.Errorf("before the first there is %s", got)
	}
	if err := s.Put("res_1", basis, []byte(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := s.Get("res_1", basis); string(got) != `{"x":1}` {
		t.Errorf("got %s", got)
	}
	for name, other := range map[string]inits.Basis{
		"another artifact":      {Artifact: "b", Terraform: "t", Engine: "e", Config: "c"},
		"another Terraform":     {Artifact: "a", Terraform: "u", Engine: "e", Config: "c"},
		"another engine":        {Artifact: "a", Terraform: "t", Engine: "f", Config: "c"},
		"another configuration": {Artifact: "a", Terraform: "t", Engine: "e", Config: "d"},
	} {
		if got := s.Get("res_1", other); got != nil {
			t.Errorf("%s gets %s", name, got)
		}
	}
	if got := s.Get("res_2", basis); got != nil {
		t.Errorf("another resource gets %s", got)
	}
	if err := s.Put("res_1", basis, []byte(`{"half":`)); err == nil {
		t.Error("half a file is kept")
	}
	if got := s.Get("res_1", basis); string(got) != `{"x":1}` {
		t.Errorf("after half a file: %s", got)
	}
	// A name that leads elsewhere leads nowhere.
	if err := s.Put("../../outside", basis, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(s.Dir, "*")); err != nil || len(files) != 2 {
		t.Errorf("%v, %v: want two files", files, err)
	}
}

func TestConfigDigest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rc")
	write := func(text string) string {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return inits.ConfigDigest(path, "A=1")
	}
	one := write("one")
	all := map[string]string{
		"the same": one, "other contents": write("two"), "another setting": inits.ConfigDigest(path, "A=2"), "none": inits.ConfigDigest("", "A=1"),
		"a file that is missing": inits.ConfigDigest(path+"x", "A=1"),
	}
	seen := map[string]string{}
	for name, digest := range all {
		if other, ok := seen[digest]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[digest] = name
	}
	if write("one") != one {
		t.Error("the same contents have another digest")
	}
}
