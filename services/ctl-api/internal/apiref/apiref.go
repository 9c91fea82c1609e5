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

// Resource names a resource; nil when there is none.
func Resource(id *string, kind, name string) *apigen.ResourceRef {
	if id == nil {
		return nil
	}
	return &apigen.ResourceRef{ID: *id, Kind: apigen.ResourceRefKind(kind), Name: name}
}
