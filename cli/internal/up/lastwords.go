package up

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/redact"
)

// lastWindow is how much of the end of a log is looked at, in bytes: an error
// comes soon before the end of its process.
const lastWindow = 16 << 10

var (
	// ownError is how our executables end: their name, the error, and on the next
	// line the remedy.
	ownError = regexp.MustCompile(`^berth-[a-z-]+: `)
	// logLine is one that a service logged, and not said at its end.
	logLine = regexp.MustCompile(`^(time=|\{)`)
	// loggedError is an error in the log of Postgres, of our services, and of Go.
	loggedError = regexp.MustCompile(`\b(FATAL|PANIC|ERROR):\s|\blevel=ERROR\b|"level":"ERROR"|^(panic|fatal error): `)
	// addsToError are lines of Postgres that belong to the error above them.
	addsToError = regexp.MustCompile(`\b(DETAIL|HINT):\s`)
)

// lastWords finds, in what a process wrote, why it ended, and what to do about it
// where the process says so: its own last error, else the last that is in its log,
// else its last line.
func lastWords(out string) (what, remedy string) {
	var lines []string
	for line := range strings.SplitSeq(out, "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(line, " \r"))
		}
	}
	for i, line := range slices.Backward(lines) {
		if !ownError.MatchString(line) {
			continue
		}
		_, what, _ = strings.Cut(line, ": ")
		rest := lines[i+1:]
		// A list follows a colon, and a tab the addresses that the client of Postgres tried.
		for list := strings.HasSuffix(what, ":"); len(rest) > 0 && (list && !logLine.MatchString(rest[0]) || strings.HasPrefix(rest[0], "\t")); {
			what, rest = what+" "+strings.TrimSpace(rest[0]), rest[1:]
		}
		if len(rest) > 0 && !logLine.MatchString(rest[0]) {
			remedy = strings.TrimSpace(rest[0])
		}
		return what, remedy
	}
	for i, line := range slices.Backward(lines) {
		if !loggedError.MatchString(line) {
			continue
		}
		for _, more := range lines[i+1:] {
			if !addsToError.MatchString(more) {
				break
			}
			line += " " + more[addsToError.FindStringIndex(more)[0]:]
		}
		return strings.TrimSpace(line), ""
	}
	if len(lines) == 0 {
		return "", ""
	}
	return strings.TrimSpace(lines[len(lines)-1]), ""
}

// lastWordsOf are the last words in a log, from an offset on: what is before it
// an earlier process wrote.
func lastWordsOf(path string, from int64) (what, remedy string) {
	f, err := os.Open(path)
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", ""
	}
	if from > info.Size() { // it was turned over in between
		from = 0
	}
	from = max(from, info.Size()-lastWindow)
	data, _ := io.ReadAll(io.NewSectionReader(f, from, lastWindow))
	return lastWords(string(data))
}

// secretsOf are the values that must not leave the data folder in an error.
func secretsOf(l Layout) *redact.Set {
	secrets := redact.New()
	files, _ := filepath.Glob(filepath.Join(l.dsns(), "*.dsn"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			if u, err := url.Parse(strings.TrimSpace(string(data))); err == nil && u.User != nil {
				password, _ := u.User.Password()
				secrets.Add([]byte(password), "")
			}
		}
	}
	for _, file := range []string{l.Token(), l.masterKey()} {
		if data, err := os.ReadFile(file); err == nil {
			secrets.Add([]byte(strings.TrimSpace(string(data))), "")
		}
	}
	return secrets
}
