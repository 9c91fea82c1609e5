package action

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// folderOf is the unpacked directory that steps with this artifact run in.
func folderOf(j *job.Job, artifact string) string {
	return j.In(filepath.FromSlash(jobspec.Artifact{Digest: artifact}.Folder()))
}

// checkFolder refuses a step whose directory or file is not there.
func checkFolder(j *job.Job, sc script) error {
	dir := folderOf(j, sc.Artifact)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return job.Refusef("plan again", "%s: step %q runs in a directory of a repository, and the job came without it", j.Subject(), sc.Name)
	}
	word := firstWord(sc.Text)
	if ofRepository(word) && !isFile(dir, word) {
		return job.Refusef("correct the command, or the directory and branch of the repository; then sync and deploy again",
			"%s: step %q runs %s, which is not in the directory of its repository", j.Subject(), sc.Name, word)
	}
	return nil
}

// plainPath is a path that means the same to the shell as to us.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_./-]*$`)

// firstWord is what a command begins with, "" when the shell would read it as
// something else than a path.
func firstWord(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 || !plainPath.MatchString(words[0]) {
		return ""
	}
	return words[0]
}

// isFile tells whether the word names a file in the directory.
func isFile(dir, word string) bool {
	name := filepath.FromSlash(path.Clean(word))
	if word == "" || !filepath.IsLocal(name) {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// startedFile is the file of the directory that a command starts, "" when it starts
// something else. A word without a slash is a program first, as shells have it.
func startedFile(dir, command string, isProgram func(name string) bool) string {
	word := firstWord(command)
	if !isFile(dir, word) || !strings.Contains(word, "/") && isProgram(word) {
		return ""
	}
	return word
}

func isProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// enter moves the shell to where the script runs and returns its text. In the
// directory of a repository the file that a command starts is run like a script of
// ours, by its first line: so it needs no mode, and one for sh gets bash.
func (s *shell) enter(sc script) (string, error) {
	if sc.Artifact == "" {
		return sc.Text, nil
	}
	if err := checkFolder(s.job, sc); err != nil {
		return "", err
	}
	s.dir = folderOf(s.job, sc.Artifact)
	command := sc.Text
	word := startedFile(s.dir, command, isProgram)
	if word == "" {
		return command, nil
	}
	file := filepath.Join(s.dir, filepath.FromSlash(path.Clean(word)))
	if binary, err := isBinary(file); err != nil || binary {
		return command, err
	}
	program, args, err := s.command(file)
	if err != nil {
		return "", job.Failf("", "%s: step %q: %v", s.job.Subject(), sc.Name, err)
	}
	quoted := quote(program)
	for _, arg := range args {
		quoted += " " + quote(arg)
	}
	return quoted + strings.TrimPrefix(strings.TrimLeft(command, " \t\r\n"), word), nil
}

// isBinary tells an executable from a script.
func isBinary(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	const enough = 512
	head, err := io.ReadAll(io.LimitReader(f, enough))
	return bytes.IndexByte(head, 0) >= 0, err
}

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
