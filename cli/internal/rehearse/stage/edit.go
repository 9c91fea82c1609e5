package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

type table = map[string]any

// replace puts a block where a part stands: the whole file, or a table of it.
func (s *staging) replace(at place.Place, block table) error {
	path := filepath.Join(s.to, filepath.FromSlash(at.File))
	whole := any(block)
	if at.Key != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		doc := table{}
		if err := toml.Unmarshal(raw, &doc); err != nil {
			return err
		}
		if err := put(doc, at.Key, block); err != nil {
			return err
		}
		whole = doc
	}
	raw, err := toml.Marshal(whole)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil { // a link would lead to another file
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// remove takes a table out of its file, or the whole file away.
func (s *staging) remove(at place.Place) error {
	path := filepath.Join(s.to, filepath.FromSlash(at.File))
	if at.Key == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // it was set aside
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	doc := table{}
	if err := toml.Unmarshal(raw, &doc); err != nil {
		return err
	}
	m := keyOf.FindStringSubmatch(at.Key)
	if m == nil {
		return fmt.Errorf("%s is no place of a definition", at.Key)
	}
	if m[2] == "" {
		delete(doc, m[1])
	} else if list, ok := doc[m[1]].([]any); ok && numberOf(at.Key) < len(list) {
		i := numberOf(at.Key)
		doc[m[1]] = slices.Delete(list, i, i+1)
	}
	if raw, err = toml.Marshal(doc); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil { // a link would lead to another file
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

// keyOf reads "components[2]", "sandbox".
var keyOf = regexp.MustCompile(`^([A-Za-z0-9_-]+)(?:\[(\d+)\])?$`)

func put(doc table, key string, block table) error {
	m := keyOf.FindStringSubmatch(key)
	if m == nil {
		return fmt.Errorf("%s is no place of a part", key)
	}
	if m[2] == "" {
		doc[m[1]] = block
		return nil
	}
	i, err := strconv.Atoi(m[2])
	if err != nil {
		return err
	}
	for name := range doc {
		list, ok := doc[name].([]any)
		if name == m[1] && ok && i < len(list) {
			list[i] = block
			return nil
		}
	}
	return errors.New("there is no " + key)
}

func numberOf(key string) int {
	m := keyOf.FindStringSubmatch(key)
	if m == nil || m[2] == "" {
		return -1
	}
	n, _ := strconv.Atoi(m[2]) // digits
	return n
}
