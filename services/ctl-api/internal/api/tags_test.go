package api_test

import (
	"net/http"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What is read with an ETag and changed with If-Match is changed only when
// nobody else was faster.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	c := newDoor(t).org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	header := func(r *http.Response) string { return r.Header.Get("ETag") }
	for name, noun := range map[string]struct {
		read   func() (tag string, err error)
		change func(tag *string, value string) (status int, tagAfter string, err error)
	}{
		"app": {
			func() (string, error) {
				got, err := c.GetAppWithResponse(t.Context(), "hello")
				return header(got.HTTPResponse), err
			},
			func(tag *string, value string) (int, string, error) {
				got, err := c.UpdateAppWithResponse(t.Context(), "hello", &ctlapi.UpdateAppParams{IfMatch: tag}, ctlapi.AppUpdate{Description: &value})
				return got.StatusCode(), header(got.HTTPResponse), err
			},
		},
		"inputs": {
			func() (string, error) {
				got, err := c.GetInputsWithResponse(t.Context(), "acme")
				return header(got.HTTPResponse), err
			},
			func(tag *string, value string) (int, string, error) {
				got, err := c.SetInputsWithResponse(t.Context(), "acme", &ctlapi.SetInputsParams{IfMatch: tag}, ctlapi.InputsUpdate{Values: &ctlapi.InputValues{"greeting": value}})
				return got.StatusCode(), header(got.HTTPResponse), err
			},
		},
		"variable": {
			func() (string, error) {
				got, err := c.GetAppVariableWithResponse(t.Context(), "hello", "region")
				return header(got.HTTPResponse), err
			},
			func(tag *string, value string) (int, string, error) {
				got, err := c.SetAppVariableWithResponse(t.Context(), "hello", "region", &ctlapi.SetAppVariableParams{IfMatch: tag}, ctlapi.AppVariableRequest{Value: value})
				return got.StatusCode(), header(got.HTTPResponse), err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := noun.change(nil, "first"); err != nil {
				t.Fatal(err)
			}
			tag, err := noun.read()
			if err != nil || tag == "" {
				t.Fatalf("read: ETag %q, %v", tag, err)
			}
			status, after, err := noun.change(&tag, "second")
			if err != nil || status != http.StatusOK || after == tag || after == "" {
				t.Fatalf("with the right tag: %d, ETag %q, %v", status, after, err)
			}
			if now, err := noun.read(); err != nil || now != after {
				t.Errorf("read again: ETag %q, %v; the change answered %q", now, err, after)
			}
			if status, _, err := noun.change(&tag, "third"); err != nil || status != http.StatusPreconditionFailed {
				t.Errorf("with the old tag: %d, %v, want 412", status, err)
			}
			if now, err := noun.read(); err != nil || now != after {
				t.Errorf("a refused change changed something: ETag %q, %v", now, err)
			}
		})
	}
	gone, err := c.DeleteAppVariableWithResponse(t.Context(), "hello", "region", &ctlapi.DeleteAppVariableParams{IfMatch: new(`"old"`)})
	if err != nil || gone.StatusCode() != http.StatusPreconditionFailed {
		t.Errorf("delete with an old tag: %v %v", gone, err)
	}
}
