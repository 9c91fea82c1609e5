package e2e_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// raceReports are what the race detector wrote into the logs of a system whose
// executables have it, as in `RACE=1 make test`. A race leaves a process
// running, so nothing else would tell.
func (s *system) raceReports() []string {
	var reports []string
	look := func(where string, log []byte) {
		if at := bytes.Index(log, []byte("WARNING: DATA RACE")); at >= 0 {
			reports = append(reports, where+":\n"+head(string(log[at:]), 60))
		}
	}
	look("berth up", s.upLog.Bytes())
	// Files come and go under us, and the unreadable ones are not logs.
	_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(d.Name(), ".log") { // or .log.1
			return nil //nolint:nilerr // see above
		}
		if log, err := os.ReadFile(path); err == nil {
			look(filepath.Base(path), log)
		}
		return nil
	})
	return reports
}

func head(text string, lines int) string {
	all := strings.SplitN(text, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "\n")
}
