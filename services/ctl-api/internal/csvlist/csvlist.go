// Package csvlist answers lists of the API as CSV to those who ask for it with
// Accept: text/csv. It stands at the edge: handlers answer JSON as always, and
// this turns the page into a header row and a row for each item. What the columns
// of a list are is in lists; the contract says which lists have any.
package csvlist

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/csvcell"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

const (
	mediaType   = "text/csv"
	contentType = "text/csv; charset=utf-8; header=present"
)

// Answer is the middleware. Anything but a page of a list, such as a problem or a
// stream, passes as it is.
func Answer(c *gin.Context) {
	l, has := lists[httpserver.OperationID(c)]
	if !has {
		return
	}
	c.Writer.Header().Add("Vary", "Accept")
	if !prefers(c.GetHeader("Accept")) {
		return
	}
	held := &writer{ResponseWriter: c.Writer}
	c.Writer = held
	c.Next()
	c.Writer = held.ResponseWriter
	if held.page.Len() == 0 {
		return
	}
	body, next, err := l.render(held.page.Bytes(), c.Request.URL.Query())
	if err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	header := c.Writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", l.name+".csv"))
	header.Del("Content-Length")
	if next != nil {
		header.Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", c.Request.URL.EscapedPath(), next.Encode()))
	}
	_, _ = c.Writer.Write(body) // the client may be gone
}

// prefers says whether an Accept header wants CSV rather than JSON.
func prefers(accept string) bool {
	wanted := map[string]float64{}
	for one := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		wanted[kind] = max(wanted[kind], q)
	}
	return wanted[mediaType] > 0 && wanted[mediaType] >= wanted["application/json"]
}

// writer keeps a page of JSON back and lets everything else pass.
type writer struct {
	gin.ResponseWriter
	page bytes.Buffer
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.Status() == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		return w.page.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// render turns a page of JSON into CSV; next is the query of the next page, nil
// on the last one.
func (l list) render(raw []byte, query url.Values) (body []byte, next url.Values, err error) {
	var page map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers stay as they were written
	if err := decoder.Decode(&page); err != nil {
		return nil, nil, fmt.Errorf("read the page: %w", err)
	}
	items, _ := page["items"].([]any)
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true // RFC 4180
	row := make([]string, len(l.columns))
	for i, column := range l.columns {
		row[i], _, _ = strings.Cut(column, "=")
	}
	if err := w.Write(row); err != nil {
		return nil, nil, err
	}
	for _, item := range items {
		if l.prepare != nil {
			l.prepare(item)
		}
		for i, column := range l.columns {
			row[i] = cell(item, pathOf(column))
		}
		if err := w.Write(row); err != nil {
			return nil, nil, err
		}
	}
	w.Flush()
	param, value := l.next(page, items)
	if value == "" {
		return out.Bytes(), nil, w.Error()
	}
	for _, start := range starts {
		query.Del(start)
	}
	query.Set(param, value)
	return out.Bytes(), query, w.Error()
}

// pathOf is where the value of a column is in an item.
func pathOf(column string) []string {
	if head, path, named := strings.Cut(column, "="); named {
		return strings.Split(path, ".")
	} else {
		return []string{head}
	}
}

// cell is the value at a path, as text: numbers and times as in JSON, a list of
// words joined by spaces, everything else as JSON.
func cell(item any, path []string) string {
	for _, name := range path {
		fields, _ := item.(map[string]any)
		item = fields[name]
	}
	switch v := item.(type) {
	case nil:
		return ""
	case string:
		return csvcell.Safe(visible.Line(v))
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := json.Marshal(item)
	if err != nil { // what was decoded can be encoded
		return ""
	}
	return csvcell.Safe(visible.Line(string(text)))
}

// decodeRecord replaces the body of a chain's record, base64 of JSON, by what it says.
func decodeRecord(item any) {
	record, _ := item.(map[string]any)
	body, _ := record["body"].(string)
	raw, err := base64.StdEncoding.DecodeString(body)
	var said map[string]any
	if err != nil || json.Unmarshal(raw, &said) != nil {
		return
	}
	record["body"] = said
}
