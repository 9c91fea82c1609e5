package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
)

// validate refuses what does not fit the contract, naming all faults at once,
// and fills in the contract's defaults.
func (s *Server) validate(c *gin.Context) {
	op := operationOf(c)
	streams := op.streams(c.ContentType())
	var body []byte
	if !streams && op.route.Operation.RequestBody != nil {
		var err error
		if body, err = readBody(c); err != nil {
			RequestError(c, err)
			return
		}
	}
	if types := op.otherTypes(c.ContentType()); len(body) > 0 && types != "" {
		WriteProblem(c, fault.With(fault.Newf(fault.ErrInvalid, "the body has no Content-Type that this takes"), fault.Remedy("send it with the header Content-Type: %s", types)))
		return
	}
	params := make(map[string]string, len(c.Params))
	for _, p := range c.Params {
		params[p.Key] = p.Value
	}
	err := openapi3filter.ValidateRequest(c.Request.Context(), &openapi3filter.RequestValidationInput{
		Request:     c.Request,
		PathParams:  params,
		QueryParams: c.Request.URL.Query(),
		Route:       &op.route,
		Options: &openapi3filter.Options{
			MultiError:         true,
			ExcludeRequestBody: streams,
		},
	})
	if err == nil {
		checkBody(c, body)
		return
	}
	fields := fieldErrors(err, nil)
	detail := fields[0].Detail
	if at := fields[0].Pointer; at != "" {
		detail = at + ": " + detail
	}
	if len(fields) > 1 {
		detail = fmt.Sprintf("%d things are wrong with the request", len(fields))
	}
	// Not wrapped: the validator quotes the value that it refuses, and what is
	// wrapped is logged.
	WriteProblem(c, fault.With(fault.Newf(fault.ErrInvalid, "%s", detail), fault.Fields(fields...)))
}

// readBody reads a body as it was sent, and puts it back: the validator may
// write another, with defaults.
func readBody(c *gin.Context) ([]byte, error) {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(c.Request.Body)
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// fieldErrors flattens what the validator found. It never shows values, which
// may be secrets.
func fieldErrors(err error, in *openapi3filter.RequestError) []fault.FieldError {
	switch e := err.(type) { //nolint:errorlint // a tree is walked by hand, level by level
	case openapi3.MultiError:
		var all []fault.FieldError
		for _, one := range e {
			all = append(all, fieldErrors(one, in)...)
		}
		return all
	case *openapi3filter.RequestError:
		if e.Err == nil {
			return []fault.FieldError{place(e, nil, e.Reason)}
		}
		return fieldErrors(e.Err, e)
	case *openapi3.SchemaError:
		// oneOf and the like hide what is wrong below them.
		if below, ok := e.Origin.(openapi3.MultiError); ok { //nolint:errorlint // as above
			return fieldErrors(below, in)
		}
		return []fault.FieldError{place(in, e.JSONPointer(), e.Reason)}
	case *openapi3filter.ParseError:
		return []fault.FieldError{place(in, nil, parseReason(e))}
	}
	switch {
	case errors.Is(err, openapi3filter.ErrInvalidRequired):
		return []fault.FieldError{place(in, nil, "is required")}
	case errors.Is(err, openapi3filter.ErrInvalidEmptyValue):
		return []fault.FieldError{place(in, nil, "must not be empty")}
	case in != nil && in.Reason != "":
		return []fault.FieldError{place(in, nil, in.Reason)}
	}
	return []fault.FieldError{place(in, nil, "is not valid")}
}

func parseReason(e *openapi3filter.ParseError) string {
	var syntax *json.SyntaxError
	switch {
	case errors.As(e.Cause, &syntax):
		return fmt.Sprintf("is not JSON: error at byte %d", syntax.Offset)
	case errors.Is(e.Cause, io.ErrUnexpectedEOF):
		return "is not JSON: it ends too early"
	case e.Reason != "":
		return e.Reason
	}
	return "cannot be parsed"
}

// place says where: a pointer into the body, or which parameter.
func place(in *openapi3filter.RequestError, pointer []string, reason string) fault.FieldError {
	switch {
	case in != nil && in.Parameter != nil:
		at := ""
		if len(pointer) > 0 {
			at = " at " + jsonPointer(pointer)
		}
		return fault.FieldError{Detail: fmt.Sprintf("%s parameter %q%s: %s", in.Parameter.In, in.Parameter.Name, at, reason)}
	case len(pointer) > 0:
		return fault.FieldError{Pointer: jsonPointer(pointer), Detail: reason}
	case in != nil && in.RequestBody != nil:
		return fault.FieldError{Detail: "body: " + reason}
	}
	return fault.FieldError{Detail: reason}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func jsonPointer(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteString("/" + pointerEscapes.Replace(part))
	}
	return b.String()
}
