package up

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/localpg"
)

const (
	postgresPart = "postgres"

	postgresGrace = 30 * time.Second // for the last checkpoint

	// maxConnections of our own server: four times connectionLimit, migrations,
	// and what Postgres keeps back for its administrator.
	maxConnections = 200
)

// FindPostgres returns the folder of the server's binaries, as localpg.Find
// does.
func FindPostgres(getenv func(string) string) (string, error) {
	bin, err := localpg.Find(getenv)
	if errors.Is(err, localpg.ErrNone) {
		return "", problem(err, localpg.ErrNone.Advice+", or DATABASE_URL to a server", "%v", err)
	}
	return bin, ofPostgres(Layout{}, err)
}

// newPostgres is the Postgres of a data folder.
func newPostgres(l Layout, getenv func(string) string) (*localpg.Cluster, error) {
	bin, err := FindPostgres(getenv)
	if err != nil {
		return nil, err
	}
	as, err := localpg.ServerUser()
	return &localpg.Cluster{Bin: bin, Data: l.postgresDir(), Socket: l.postgresSocketDir(), User: as}, ofPostgres(l, err)
}

// initPostgres makes the data folder of our Postgres unless there is one.
func (s *supervisor) initPostgres(ctx context.Context) (fresh bool, err error) {
	fresh, err = s.postgres.Init(ctx)
	err = ofPostgres(s.Layout, err)
	var known *Problem
	if err != nil && !errors.As(err, &known) {
		// What initdb says of a full disk is less clear.
		if spaceErr := EnoughSpace(s.Layout.Shared); spaceErr != nil {
			return false, spaceErr
		}
	}
	return fresh, err
}

// ofPostgres puts an error of localpg in the words of this package.
func ofPostgres(l Layout, err error) error {
	var disk *localpg.DataError
	var known *localpg.Problem
	switch {
	case errors.As(err, &disk):
		return onDisk(l.Dir, disk.Err)
	case errors.As(err, &known):
		return problem(err, known.Advice, "%s", known.What)
	}
	return err
}

// postgresServer is our Postgres as a part.
func (s *supervisor) postgresServer() Part {
	server := s.postgres.Command(fmt.Sprintf("max_connections=%d", maxConnections), "log_line_prefix=%m [%p] %u@%d ")
	return Part{
		Name:   postgresPart,
		Path:   server.Path,
		Args:   server.Args[1:],
		Env:    server.Env,
		Dir:    server.Dir,
		Log:    s.Layout.LogFile(postgresPart),
		User:   s.postgres.User,
		Polite: syscall.SIGINT,
		Grace:  postgresGrace,
		Ready:  func(context.Context) error { return s.postgres.Ready() },
	}
}
