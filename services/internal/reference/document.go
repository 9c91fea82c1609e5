package reference

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
)

// problems are the answers that the door of every service gives by itself, so
// the contract does not repeat them at each operation.
var problems = []struct {
	status             int
	name, code, detail string
	when               string // for readers
	applies            func(item *openapi3.PathItem, op *openapi3.Operation) bool
}{
	{401, "Unauthenticated", "unauthenticated", "the token is not valid", "There is no valid token.", isGuarded},
	{403, "Forbidden", "forbidden", "this takes the role admin", "The caller is known, and may not do this.", isGuarded},
	{404, "NotFound", "not_found", "there is no such install", "It does not exist, or belongs to somebody else.", inPath},
	{409, "Conflict", "conflict", `install "acme" already exists`, "It contradicts what is there now, or an `Idempotency-Key` was used for another request.", changesSomething},
	{412, "PreconditionFailed", "precondition_failed", "install acme has changed since you read it", "It was changed since the version that `If-Match` names.", isConditional},
	{413, "TooLarge", "too_large", "the body is larger than 1048576 bytes", "The body is over the limit of the operation.", hasBody},
	{422, "Invalid", "invalid", "2 things are wrong with the request", "It can never be served as it is; `errors` names all faults.", takesSomething},
	{429, "RateLimited", "rate_limited", "too many requests", "Too many requests: `Retry-After` says when to come back, in seconds.", isGuarded},
}

func isGuarded(_ *openapi3.PathItem, op *openapi3.Operation) bool {
	return op.Security == nil || len(*op.Security) > 0
}

func hasBody(_ *openapi3.PathItem, op *openapi3.Operation) bool { return op.RequestBody != nil }

func isConditional(item *openapi3.PathItem, op *openapi3.Operation) bool {
	return slices.ContainsFunc(parametersOf(item, op), func(p *openapi3.Parameter) bool {
		return p.In == openapi3.ParameterInHeader && p.Name == "If-Match"
	})
}

func inPath(item *openapi3.PathItem, op *openapi3.Operation) bool {
	for _, p := range parametersOf(item, op) {
		if p.In == openapi3.ParameterInPath {
			return true
		}
	}
	return false
}

func takesSomething(item *openapi3.PathItem, op *openapi3.Operation) bool {
	return hasBody(item, op) || len(parametersOf(item, op)) > 0
}

func changesSomething(item *openapi3.PathItem, op *openapi3.Operation) bool {
	for method, other := range item.Operations() {
		if other == op {
			return method != http.MethodGet
		}
	}
	return false
}

func parametersOf(item *openapi3.PathItem, op *openapi3.Operation) (all []*openapi3.Parameter) {
	for _, list := range []openapi3.Parameters{item.Parameters, op.Parameters} {
		for _, p := range list {
			all = append(all, p.Value)
		}
	}
	return all
}

// Document is the contract as it is published: with the address that serves it,
// the answers that the door gives, an example of every body, and how to call
// each operation.
func Document(spec *openapi3.T, basePath string, clients Clients) ([]byte, error) {
	raw, err := spec.MarshalJSON()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw) // a copy
	if err != nil {
		return nil, err
	}
	address := basePath
	if address == "" {
		address = "/"
	}
	doc.Servers = openapi3.Servers{{URL: address, Description: "The one that serves this document."}}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, response := range op.Responses.Map() {
				addExamples(response.Value.Content)
			}
			if op.RequestBody != nil {
				addExamples(op.RequestBody.Value.Content)
			}
			if op.Extensions == nil {
				op.Extensions = map[string]any{}
			}
			op.Extensions["x-codeSamples"] = clients.samples(callOf(method, basePath+path, item, op))
		}
	}
	addProblems(doc)
	return doc.MarshalJSON()
}

func addExamples(content openapi3.Content) {
	media := content.Get("application/json")
	if media == nil || media.Example != nil || len(media.Examples) > 0 {
		return
	}
	media.Example = exampleOf(media)
}

// addProblems names the answers of the door at each operation that gives them,
// except where the contract says something of its own about that status.
func addProblems(doc *openapi3.T) {
	if doc.Components == nil || doc.Components.Schemas["Problem"] == nil {
		return
	}
	if doc.Components.Responses == nil {
		doc.Components.Responses = openapi3.ResponseBodies{}
	}
	for _, problem := range problems {
		status, named := strconv.Itoa(problem.status), false
		for _, item := range doc.Paths.Map() {
			for _, op := range item.Operations() {
				if op.Responses.Value(status) == nil && problem.applies(item, op) {
					op.Responses.Set(status, &openapi3.ResponseRef{Ref: "#/components/responses/" + problem.name})
					named = true
				}
			}
		}
		if !named {
			continue
		}
		response := openapi3.NewResponse().WithDescription(problem.when)
		response.Content = openapi3.Content{"application/problem+json": {
			Schema: &openapi3.SchemaRef{Ref: "#/components/schemas/Problem"},
			Example: map[string]any{
				"type": "about:blank", "title": http.StatusText(problem.status), "status": problem.status,
				"code": problem.code, "detail": problem.detail, "request_id": "req_01jd0c3k7m",
			},
		}}
		if problem.status == http.StatusTooManyRequests {
			response.Headers = openapi3.Headers{
				"Retry-After":      header(openapi3.NewIntegerSchema(), "In how many seconds to try again.", 1),
				"RateLimit-Policy": header(openapi3.NewStringSchema(), "How many requests (q) one caller may send in how many seconds (w). Every answer has it.", `"requests";q=6000;w=60`),
				"RateLimit":        header(openapi3.NewStringSchema(), "How many are left (r) in the process that answers, which counts for itself, and in how many seconds all are back (t). Every answer has it.", `"requests";r=0;t=60`),
			}
		}
		doc.Components.Responses[problem.name] = &openapi3.ResponseRef{Value: response}
	}
}

func header(schema *openapi3.Schema, description string, example any) *openapi3.HeaderRef {
	schema.Example = example
	return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: openapi3.Parameter{Description: description, Schema: schema.NewRef()}}}
}

// Clients are the ways to call an API that its reference shows.
type Clients struct {
	Go         string // the package of the generated client; empty for none
	TypeScript bool
}

// Of are the clients of a service's API.
func Of(service string) Clients {
	switch service {
	case "ctl-api":
		return Clients{Go: "ctlapi", TypeScript: true}
	case "log-ingest":
		return Clients{Go: "logapi"}
	}
	return Clients{}
}
