// Package metricexport sends the points of series, of all orgs, to an OpenTelemetry
// collector of whoever operates Berth. What Berth's services say about themselves takes
// another way: pkg/telemetry.
//
// Points have an order in which none can come in later: by the transaction that wrote them, up
// to the oldest one that is still open. The position in it is one row, metric_export, which
// moves after the collector has answered: a process that dies in between has a batch
// sent twice, and no point is left out. Whoever claims the row sends alone.
//
//	claim ──▶ read a batch ──▶ post ──▶ taken: behind the batch
//	                                    refused (400, 413): the same with half as many points,
//	                                                        one alone is skipped
//	                                    anything else: the same again after a pause
package metricexport
