package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// call is one operation, and where it is.
type call struct {
	method, path string // the path as in the contract: /apps/{app}
	parameters   []*openapi3.Parameter
	op           *openapi3.Operation
}

type sample struct {
	Lang   string `json:"lang"`
	Label  string `json:"label"`
	Source string `json:"source"`
}

func (c Clients) samples(call call) []sample {
	all := []sample{{"Shell", "curl", call.curl()}}
	if c.Go != "" {
		all = append(all, sample{"Go", "Go", call.goSample(c.Go)})
	}
	if c.TypeScript {
		all = append(all, sample{"TypeScript", "TypeScript", call.typeScript()})
	}
	return all
}

func callOf(method, path string, item *openapi3.PathItem, op *openapi3.Operation) call {
	return call{method: method, path: path, parameters: parametersOf(item, op), op: op}
}

// valueOf is an example of a parameter, as its text in a URL.
func valueOf(p *openapi3.Parameter) string {
	value := p.Example
	if value == nil {
		value = exampleOfSchema(p.Schema, "", 0)
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[0]
	}
	return fmt.Sprint(value)
}

// sent are the parameters that a sample gives: those that have to be there.
func (c call) sent(in string) (sent []*openapi3.Parameter) {
	for _, p := range c.parameters {
		if p.In == in && p.Required {
			sent = append(sent, p)
		}
	}
	return sent
}

func (c call) repeats() bool {
	for _, p := range c.parameters {
		if p.In == openapi3.ParameterInHeader && p.Name == "Idempotency-Key" {
			return true
		}
	}
	return false
}

// filled is the path with values, and the query.
func (c call) filled() string {
	at := c.path
	query := url.Values{}
	for _, p := range c.sent(openapi3.ParameterInPath) {
		at = strings.ReplaceAll(at, "{"+p.Name+"}", url.PathEscape(valueOf(p)))
	}
	for _, p := range c.sent(openapi3.ParameterInQuery) {
		query.Set(p.Name, valueOf(p))
	}
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	return at
}

// body is the type and an example of what is sent; text is empty when it is not
// JSON, but a file.
func (c call) body() (contentType, text string) {
	if c.op.RequestBody == nil {
		return "", ""
	}
	content := c.op.RequestBody.Value.Content
	if media := content.Get("application/json"); media != nil {
		return "application/json", indented(exampleOf(media))
	}
	return slices.Sorted(maps.Keys(content))[0], ""
}

func indented(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSpace(text.String())
}

// curl keeps the token out of the arguments, which everybody on the machine can
// read.
func (c call) curl() string {
	method := ""
	if c.method != http.MethodGet {
		method = "-X " + c.method + " "
	}
	lines := []string{"curl " + method + `"$BERTH_URL` + c.filled() + `"`, `-K <(printf 'oauth2-bearer = "%s"' "$BERTH_TOKEN")`}
	if c.repeats() {
		lines = append(lines, `-H "Idempotency-Key: $(uuidgen)"`)
	}
	if contentType, text := c.body(); text != "" {
		lines = append(lines, "-H 'Content-Type: "+contentType+"'", "-d '"+strings.ReplaceAll(text, "'", `'\''`)+"'")
	} else if contentType != "" {
		lines = append(lines, "-H 'Content-Type: "+contentType+"'", "--data-binary @FILE")
	}
	return strings.Join(lines, " \\\n  ")
}

// goSample calls the generated client, whose names are the operation's.
func (c call) goSample(pkg string) string {
	name := upper(c.op.OperationID)
	args := []string{"ctx"}
	for _, p := range c.sent(openapi3.ParameterInPath) {
		args = append(args, fmt.Sprintf("%q", valueOf(p)))
	}
	if c.hasParams() {
		args = append(args, c.goParams(pkg, name))
	}
	contentType, text := c.body()
	var before string
	switch {
	case text != "":
		name += "WithBody"
		args = append(args, fmt.Sprintf("%q", contentType), "strings.NewReader(body)")
		before = "body := `" + text + "`\n"
	case contentType != "":
		name += "WithBody"
		args = append(args, fmt.Sprintf("%q", contentType), "file")
		before = "file, err := os.Open(\"FILE\")\nif err != nil {\n\treturn err\n}\ndefer file.Close()\n"
	}
	return fmt.Sprintf("%sresp, err := client.%sWithResponse(%s)\nif err != nil {\n\treturn err\n}\nfmt.Println(resp.Status())",
		before, name, strings.Join(args, ", "))
}

// hasParams says whether the client's method takes parameters other than those
// in the path.
func (c call) hasParams() bool {
	for _, p := range c.parameters {
		if p.In != openapi3.ParameterInPath {
			return true
		}
	}
	return false
}

func (c call) goParams(pkg, name string) string {
	var fields []string
	for _, p := range c.sent(openapi3.ParameterInQuery) {
		value := valueOf(p)
		switch {
		case p.Schema.Value.Format == "date-time":
			value = "time.Now().Add(-24 * time.Hour)"
		case p.Schema.Value.Type.Is("string"):
			value = strconv.Quote(value)
		}
		fields = append(fields, upper(p.Name)+": "+value)
	}
	if len(fields) == 0 {
		return "nil"
	}
	return fmt.Sprintf("&%s.%sParams{%s}", pkg, name, strings.Join(fields, ", "))
}

var wordStart = regexp.MustCompile(`(^|[-_])[a-z]`)

// upper is a name as Go exports it.
func upper(name string) string {
	return wordStart.ReplaceAllStringFunc(name, func(start string) string {
		return strings.ToUpper(strings.TrimLeft(start, "-_"))
	})
}

func (c call) typeScript() string {
	var options []string
	var params []string
	for _, in := range []string{openapi3.ParameterInPath, openapi3.ParameterInQuery} {
		var fields []string
		for _, p := range c.sent(in) {
			fields = append(fields, p.Name+": "+indented(valueOf(p)))
		}
		if len(fields) > 0 {
			params = append(params, in+": { "+strings.Join(fields, ", ")+" }")
		}
	}
	if len(params) > 0 {
		options = append(options, "params: { "+strings.Join(params, ", ")+" }")
	}
	if contentType, text := c.body(); text != "" {
		options = append(options, "body: "+strings.ReplaceAll(text, "\n", "\n  "))
	} else if contentType != "" {
		options = append(options, "body: file", "headers: { \"Content-Type\": "+indented(contentType)+" }")
	}
	arguments := indented(c.path)
	if len(options) > 0 {
		arguments += ", {\n  " + strings.Join(options, ",\n  ") + ",\n}"
	}
	return fmt.Sprintf("const { data } = await berth.%s(%s);", c.method, arguments)
}
