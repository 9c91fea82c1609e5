package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const ms = 1_000_000

func TestPick(t *testing.T) {
	t.Parallel()
	begin := uint64(1_700_000_000_000 * ms)
	of := func(trace, service, name string, from, to uint64) span {
		return span{Trace: trace, Service: service, Scope: "s", Name: name, Start: begin + from*ms, End: begin + to*ms}
	}
	statement := of("a", "berth-ctl-api", "query X", 12, 13)
	statement.Scope = database
	got, err := pick([]span{
		of("b", "berth", "berth", 0, 9000), of("b", "berth", "berth", 1, 2), of("b", "berth", "berth", 1, 2), of("b", "berth", "x", 1, 2), of("b", "berth", "x", 1, 2), of("b", "berth", "x", 1, 2),
		of("a", "berth-runner", "job plan", 100, 300), // exported before what began before it
		of("a", "berth-runner", "job plan", 200, 400), of("a", "berth-runner", "job plan", 300, 350),
		of("a", "berth-runner", "job apply", 500, 600),
		of("a", "berth", "berth", 0, 700), of("a", "berth-ctl-api", "POST /x", 10, 15), statement,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := picture{Trace: "a", Spans: 7, Database: 1, Seconds: .7, Lanes: []lane{
		{"berth", "berth", [][2]int{{0, 700}}},
		{"berth-ctl-api", "POST /x", [][2]int{{10, 15}}},
		{"berth-runner", "job plan", [][2]int{{100, 300}, {300, 350}}},
		{"berth-runner", "job plan", [][2]int{{200, 400}}},
		{"berth-runner", "job apply", [][2]int{{500, 600}}},
	}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the trace with most services (-want +got):\n%s", diff)
	}
	if _, err := pick(nil); err == nil {
		t.Error("a picture of nothing")
	}
}

func TestDrawIsWellFormed(t *testing.T) {
	t.Parallel()
	svg := draw(picture{Seconds: 2, Lanes: []lane{{"berth-<x>", `GET /a?b=1&c="2"`, [][2]int{{0, 1}}}}})
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, svg)
		}
	}
}

// The picture in the docs is what its data say.
func TestPictureInTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/pictures/deploy-trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var p picture
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile("../../docs/pictures/deploy-trace.svg")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(draw(p), string(svg)); diff != "" {
		t.Errorf("docs/pictures/deploy-trace.svg is drawn differently (-want +got):\n%s", diff)
	}
}
