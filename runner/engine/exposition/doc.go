// Package exposition reads the numbers that a script wrote, in Prometheus' text format:
//
//	# HELP queue_length Mails that wait.
//	# TYPE queue_length gauge
//	queue_length{queue="mail"} 12
//
// It reads line by line, and one that it does not understand costs that line only. The
// histograms and summaries of the format are lines too, and so series like any other:
// h_bucket{le="1"}, h_sum and h_count. Times are not used: a number is of the run that
// wrote it.
//
// Nothing here trusts the file: a script may have made anything in its place. What of
// the numbers is kept decides jobspec.KeepMetrics.
package exposition
