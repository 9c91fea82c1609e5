package api

import (
	"log/slog"
	"net"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/reference"
	"github.com/berth-dev/berth/services/log-ingest/internal/access"
	"github.com/berth-dev/berth/services/log-ingest/internal/apigen"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

const (
	tailBeat = 15 * time.Second
	// tailAge bounds how long a revoked user token can keep reading.
	tailAge = 15 * time.Minute
)

// Door is where and how the service listens.
type Door struct {
	Listener net.Listener
	Limits   httpserver.Limits
	Rates    httpserver.Rates
	Log      *slog.Logger
}

// New is the door of log-ingest.
func New(d Door, st *database.Store, str *streams.Streams) (*httpserver.Server, error) {
	spec, err := apigen.GetSpec()
	if err != nil {
		return nil, err
	}
	door := httpserver.New(httpserver.Config{
		Name:     "berth-log-ingest",
		Log:      d.Log,
		Spec:     spec,
		Listener: d.Listener,
		Limits:   d.Limits,
		Rates:    d.Rates,
		Middleware: []gin.HandlerFunc{
			access.Routes.Authorize(spec, access.NewAuthenticator(st)),
			access.Reach(st),
			nameWriter,
		},
		BodyLimits: map[string]int64{"AppendRecords": maxBody},
		Ready:      st.Ping,
		Reference:  reference.Of("log-ingest"),
	})
	strict := apigen.NewStrictHandlerWithOptions(server{streams: str, tails: tailLimits{beat: tailBeat, age: tailAge}}, nil, apigen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  httpserver.RequestError,
		HandlerErrorFunc:         httpserver.HandlerError,
		ResponseErrorHandlerFunc: httpserver.ResponseError,
	})
	apigen.RegisterHandlersWithOptions(door.Router(), strict, apigen.GinServerOptions{ErrorHandler: httpserver.ParamError})
	return door, nil
}
