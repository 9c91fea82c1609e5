package store

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

var (
	instruments    = telemetry.InstrumentsOf("services/internal/store")
	connections    = instruments.Gauge("db.client.connection.count", "{connection}", "connections of the pool, by state")
	maxConnections = instruments.Gauge("db.client.connection.max", "{connection}", "connections that the pool may have")
)

// observePool shows how much of a pool is in use, until stop.
func observePool(pool *pgxpool.Pool, name string) (stop func()) {
	pooled := attribute.String("db.client.connection.pool.name", name)
	in := func(state string) metric.ObserveOption {
		return metric.WithAttributes(pooled, attribute.String("db.client.connection.state", state))
	}
	return instruments.Observe(func(_ context.Context, o metric.Observer) error {
		stat := pool.Stat()
		o.ObserveFloat64(connections, float64(stat.AcquiredConns()), in("used"))
		o.ObserveFloat64(connections, float64(stat.IdleConns()), in("idle"))
		o.ObserveFloat64(maxConnections, float64(stat.MaxConns()), metric.WithAttributes(pooled))
		return nil
	}, connections, maxConnections)
}
