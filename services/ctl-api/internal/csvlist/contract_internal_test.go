package csvlist

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
)

// The contract promises CSV for the lists that have columns, and each column is a
// field of the list's items.
func TestColumnsAreInTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for path, item := range spec.Paths.Map() {
		for _, op := range item.Operations() {
			ok := op.Responses.Value("200")
			if ok == nil {
				continue
			}
			promised := ok.Value.Content.Get(mediaType) != nil && ok.Value.Content[mediaType] != nil
			l, has := lists[op.OperationID]
			if promised != has {
				t.Errorf("%s: the contract promises CSV: %t; it has columns: %t", path, promised, has)
			}
			if !has {
				continue
			}
			seen[op.OperationID] = true
			items := ok.Value.Content["application/json"].Schema.Value.Properties["items"].Value.Items.Value
			heads := map[string]bool{}
			for _, column := range l.columns {
				head, _, _ := strings.Cut(column, "=")
				if heads[head] {
					t.Errorf("%s has two columns %s", path, head)
				}
				heads[head] = true
				if at := pathOf(column); at[0] != "body" && !reaches(items, at) {
					t.Errorf("%s: items have no %s", path, strings.Join(at, "."))
				}
			}
		}
	}
	for op := range lists {
		if !seen[op] {
			t.Errorf("%s is no list of the contract", op)
		}
	}
}

// reaches says whether a schema has a field at a path.
func reaches(schema *openapi3.Schema, path []string) bool {
	if len(path) == 0 {
		return true
	}
	for _, part := range append(openapi3.SchemaRefs{{Value: schema}}, schema.AllOf...) {
		if field := part.Value.Properties[path[0]]; field != nil {
			return reaches(field.Value, path[1:])
		}
	}
	return false
}
