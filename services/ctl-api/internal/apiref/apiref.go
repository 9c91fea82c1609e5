// Package apiref owns how the routes of the API name other objects.
package apiref

import "github.com/berth-dev/berth/services/ctl-api/internal/apigen"

// Number names an object by its id and its number; nil when there is none.
func Number(id *string, number *int32) *apigen.NumberRef {
	if id == nil || number == nil {
		return nil
	}
	return &apigen.NumberRef{ID: *id, Number: int(*number)}
}
