package foresight

import (
	"slices"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// Secrets lists the secrets whose values or versions a block's templates read, by name. A
// template that goes through all secrets reads each of them.
func Secrets(b Block) (names []string) {
	for _, ref := range b.references() {
		switch {
		case ref.Kind != interpolate.KindSecret && ref.Kind != interpolate.KindTree:
		case ref.Name != "":
			names = append(names, ref.Name)
		case ref.Dynamic:
			for _, s := range b.App.Secrets {
				names = append(names, s.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
