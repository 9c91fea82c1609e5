package api_test

import (
	"encoding/csv"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var nextLink = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// csv reads a list page by page, as rows without the header, which is the same on
// each page.
func (c caller) csv(path string) (header []string, rows [][]string) {
	c.d.t.Helper()
	for path != "" {
		status, head, body := c.raw("GET", path, "", "Accept", "text/csv")
		all, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
		if status != http.StatusOK || err != nil || !strings.HasPrefix(head.Get("Content-Type"), "text/csv") || len(all) == 0 {
			c.d.t.Fatalf("%s answered %d %s: %v: %s", path, status, head.Get("Content-Type"), err, body)
		}
		if header != nil {
			if diff := cmp.Diff(header, all[0]); diff != "" {
				c.d.t.Errorf("another header on %s:\n%s", path, diff)
			}
		}
		header, rows, path = all[0], append(rows, all[1:]...), ""
		if next := nextLink.FindStringSubmatch(head.Get("Link")); next != nil {
			path = next[1]
		}
	}
	return header, rows
}

func TestListsAsCSV(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex", "hooli")
	d.sql(`update runners set name = $1, version = $2 where install_id = (select id from installs where name = 'acme')`,
		`=HYPERLINK("http://evil.example","click")`, "two\nlines, \"quoted\"\x1b[2J")
	head := d.number("initech")

	header, rows := admin.csv("/installs?limit=2")
	if diff := cmp.Diff([]string{"name", "app", "customer", "state", "health"}, header[:5]); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	var got [][]string
	for _, row := range rows {
		got = append(got, row[:4])
	}
	want := [][]string{{"acme", "hello", "customer-of-acme", "live"}, {"globex", "hello", "customer-of-globex", "live"}, {"hooli", "hello", "customer-of-hooli", "live"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("installs (-want +got):\n%s", diff)
	}

	// What a runner or a customer wrote does nothing in a spreadsheet or a terminal.
	_, rows = admin.csv("/runners")
	attacked := false
	for _, row := range rows {
		for _, cell := range row {
			attacked = attacked || strings.Contains(cell, "HYPERLINK")
			if strings.HasPrefix(cell, "=") || strings.ContainsAny(cell, "\x1b\n") {
				t.Errorf("a cell is %q", cell)
			}
		}
	}
	if !attacked {
		t.Error("the attack is not in the list")
	}

	// Streams and chains have other positions than lists.
	if _, rows = admin.csv("/events?limit=3"); int64(len(rows)) != head {
		t.Errorf("%d events, want %d", len(rows), head)
	}
	if header, rows = admin.csv("/chains/org/records?limit=2"); len(rows) < 3 || header[4] != "what" || rows[0][4] == "" {
		t.Errorf("audit: %v %v", header, rows)
	}

	// Anything else is as it was.
	for _, tc := range []struct {
		path, accept, contentType string
		status                    int
	}{
		{"/runners", "", "application/json", 200},
		{"/runners", "application/json", "application/json", 200},
		{"/runners", "*/*", "application/json", 200},
		{"/runners", "text/html, text/csv;q=0.5, application/json", "application/json", 200},
		{"/runners", "text/csv, application/json;q=0.5", "text/csv", 200},
		{"/runners", "text/csv;q=0", "application/json", 200},
		{"/runners?limit=0", "text/csv", "application/problem+json", 422},
		{"/runners?install=nope", "text/csv", "application/problem+json", 404},
		{"/me", "text/csv", "application/json", 200},
		{"/events?follow=true", "text/csv", "text/event-stream", 200},
	} {
		status, header, _ := admin.raw("GET", tc.path, "", "Accept", tc.accept)
		if status != tc.status || !strings.HasPrefix(header.Get("Content-Type"), tc.contentType) {
			t.Errorf("%s with Accept: %q answered %d %s", tc.path, tc.accept, status, header.Get("Content-Type"))
		}
	}
}
