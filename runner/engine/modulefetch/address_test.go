package modulefetch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]Address{
		"git::https://h/team/x.git":                           {Git: "https://h/team/x.git"},
		"git::https://h/team/x.git//a/b?ref=v1.0&depth=1":     {Git: "https://h/team/x.git", Ref: "v1.0", Sub: "a/b"},
		"git::ssh://git@h:2222/team/x.git?ref=main":           {Git: "https://h/team/x.git", Ref: "main"},
		"git@h:team/x.git//sub":                               {Git: "https://h/team/x.git", Sub: "sub"},
		"git::git@h:team/x.git":                               {Git: "https://h/team/x.git"},
		"github.com/acme/x//sub?ref=v1":                       {Git: "https://github.com/acme/x.git", Ref: "v1", Sub: "sub"},
		"github.com/acme/x.git":                               {Git: "https://github.com/acme/x.git"},
		"https://h/x.git?ref=v1":                              {Git: "https://h/x.git", Ref: "v1"},
		"https://h/x.zip":                                     {Archive: "https://h/x.zip", Form: "zip"},
		"https://h/x.tgz//sub":                                {Archive: "https://h/x.tgz", Form: "tar.gz", Sub: "sub"},
		"https://h/tarball/v1//*?archive=tar.gz&sig=1":        {Archive: "https://h/tarball/v1?sig=1", Form: "tar.gz", Sub: "*"},
		"https://h/modules/x":                                 {Ask: "https://h/modules/x"},
		"acme/vpc/aws":                                        {Host: publicRegistry, Path: "acme/vpc/aws"},
		"Modules.Example.com/acme/vpc/aws//modules/endpoints": {Host: "modules.example.com", Path: "acme/vpc/aws", Sub: "modules/endpoints"},
	} {
		got, err := Parse(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	versions := []string{"1.0.0", "1.9.0", "1.10.0", "2.0.0-beta", "0.9.0", "no version"}
	for constraint, want := range map[string]string{
		"": "1.10.0", "~> 1.0": "1.10.0", "~> 1.9.0": "1.9.0", "1.0.0": "1.0.0", "= 1.0.0": "1.0.0", ">= 1.0, != 1.10.0": "1.9.0", "2.0.0-beta": "2.0.0-beta", "< 1.0": "0.9.0",
		"3.0.0": "", ">= 2": "", "one": "",
	} {
		got, err := newest(versions, constraint)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", constraint, got, err, want)
		}
	}
}
