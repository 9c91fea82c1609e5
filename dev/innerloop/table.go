package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// row is the line of the table: the loop, the service, the median, the fastest and
// the slowest save, all of them, and how loaded the machine was in the last minute.
func row(loop, service string, took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	var all []string
	for _, one := range took {
		all = append(all, seconds(one))
	}
	return fmt.Sprintf("| %s | %s | %s s | %s s | %s s | %s | %s |", loop, service,
		seconds(median(sorted)), seconds(sorted[0]), seconds(sorted[len(sorted)-1]), strings.Join(all, " "), load())
}

// median of sorted durations, at least one.
func median(sorted []time.Duration) time.Duration {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// load is how many processes wanted a processor in the last minute, on average.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
