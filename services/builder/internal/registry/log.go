package registry

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
)

// Distribution logs by logrus' standard logger, whatever it is given: each
// request, each probe for a blob that is not there (as an error), and hints
// about settings. Only errors that are not a client's doing are of use.
var (
	logTarget   atomic.Pointer[slog.Logger]
	logRedirect sync.Once
)

func redirectLogs(log *slog.Logger) {
	logTarget.Store(log)
	logRedirect.Do(func() {
		logrus.SetOutput(io.Discard)
		logrus.SetLevel(logrus.ErrorLevel)
		logrus.AddHook(slogHook{})
	})
}

type slogHook struct{}

func (slogHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel}
}

// Fire passes on server errors alone. Fields of the request other than its
// path stay out: the query of an upload holds its state.
func (slogHook) Fire(entry *logrus.Entry) error {
	if status, ok := entry.Data["http.response.status"].(int); !ok || status < 500 {
		return nil
	}
	ctx := entry.Context
	if ctx == nil {
		ctx = context.Background()
	}
	logTarget.Load().ErrorContext(ctx, "registry storage failed",
		"status", entry.Data["http.response.status"], "method", entry.Data["http.request.method"],
		"repository", entry.Data["vars.name"], "code", entry.Data["err.code"], "detail", entry.Data["err.detail"])
	return nil
}
