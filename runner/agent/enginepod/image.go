package enginepod

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// toolsDir is where the runner's executables are in the pod of an engine that has
// an image of its own. It is no directory below which images have files.
const toolsDir = "/.berth-tools"

// groupsFile is in toolsDir: the groups that Kubernetes itself gives the pod.
const groupsFile = "groups.json"

// notInImage are variables of an engine that name what only the runner's image
// has.
var notInImage = []string{"PATH", "BERTH_TERRAFORM", "BERTH_TERRAFORM_MATCH"}

// InImage is the start of the same engine in an image that is not the runner's:
// the executable stands elsewhere, and programs are those of the image. Of the
// image's environment nothing but its PATH comes through.
func (s Start) InImage() Start {
	at := path.Join(toolsDir, filepath.Base(s.Path))
	s.Digests = map[string]string{at: s.Digests[s.Path]}
	s.Path, s.OwnImage = at, true
	s.Env = slices.DeleteFunc(slices.Clone(s.Env), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(notInImage, name)
	})
	return s
}

// BringTools is what the pod of an engine with an image of its own does first, in
// the runner's image: it copies the executables into dir. They must need nothing
// of the image that they are started in.
func BringTools(dir string, executables ...string) error {
	for _, from := range executables {
		if err := static(from); err != nil {
			return err
		}
		if err := copyExecutable(from, filepath.Join(dir, filepath.Base(from))); err != nil {
			return fmt.Errorf("bring %s to the image: %w", from, err)
		}
	}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	return datadir.WriteJSON(filepath.Join(dir, groupsFile), groups)
}

// static refuses an executable that another program has to load.
func static(executable string) error {
	f, err := elf.Open(executable)
	if err != nil {
		return fmt.Errorf("executable %s: %w", executable, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked to libraries, which another image may not have: this runner cannot run an action in an image; build it with CGO_ENABLED=0", executable)
		}
	}
	return nil
}

func copyExecutable(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a pod that its node began twice
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o500)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// enterImage checks what the image makes of the engine's user, and returns the
// environment with the image's PATH.
func (s Start) enterImage(dir, searchPath string, groups []int) ([]string, error) {
	var given []int
	if found, err := datadir.ReadJSON(filepath.Join(dir, groupsFile), &given); err != nil || !found {
		return nil, errors.Join(fmt.Errorf("%s has no %s", dir, groupsFile), err)
	}
	for _, group := range groups {
		if !slices.Contains(given, group) {
			return nil, fmt.Errorf("the image puts user %d into group %d (its /etc/group): an image may give its steps no rights; take the user out of it", os.Geteuid(), group)
		}
	}
	if searchPath == "" {
		searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" // as Kubernetes' runtimes have it
	}
	return append(slices.Clone(s.Env), "PATH="+searchPath), nil
}
