package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
)

// Contents fetched from elsewhere travel in their own folder of a bundle: an
// index, and next to it each content once, named by its digest.
const fetchedIndex = folder.FetchedDir + "/index.json"

// fetchedEntry is what the index of a bundle says of one address.
type fetchedEntry struct {
	Address string `json:"address"`
	SHA256  string `json:"sha256"` // of the contents, in hex
	Size    int64  `json:"size"`   // in bytes
}

// addFetched adds what the config took from elsewhere to the files of a bundle;
// nothing when it took nothing.
func addFetched(files map[string][]byte, app *appconfig.App, fetched map[string]fetch.Result) error {
	entries := map[string]fetchedEntry{}
	for _, f := range app.Fetched {
		sum := strings.TrimPrefix(f.Digest, "sha256:")
		entries[f.Address] = fetchedEntry{Address: f.Address, SHA256: sum, Size: f.Size}
		files[path.Join(folder.FetchedDir, sum)] = fetched[f.Address].Contents
	}
	if len(entries) == 0 {
		return nil
	}
	var index []fetchedEntry
	for _, address := range slices.Sorted(maps.Keys(entries)) {
		index = append(index, entries[address])
	}
	raw, err := json.MarshalIndent(index, "", "  ")
	files[fetchedIndex] = raw
	return err
}

// takeFetched takes what was fetched out of the files of a bundle, and holds it
// against the index: the index must name every content with its digest and
// size, and nothing else.
func takeFetched(files map[string]*memFile) (map[string]fetch.Result, error) {
	var index []fetchedEntry
	if f, ok := files[fetchedIndex]; ok {
		if err := json.Unmarshal(f.data, &index); err != nil {
			return nil, fmt.Errorf("the bundle's %s is no list of what was fetched", fetchedIndex)
		}
		delete(files, fetchedIndex)
	}
	contents := map[string][]byte{} // by digest
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !folder.IsReserved(name) {
			continue
		}
		data := files[name].data
		if path.Dir(name) != folder.FetchedDir || digest.SHA256(data) != "sha256:"+path.Base(name) {
			return nil, fmt.Errorf("the bundle has other contents in %s than its name says: their digest is %s", name, digest.SHA256(data))
		}
		contents[path.Base(name)] = data
		delete(files, name)
	}
	if len(index) > fetch.MaxAddresses {
		return nil, fmt.Errorf("the bundle has files of more than %d addresses", fetch.MaxAddresses)
	}
	fetched, named := map[string]fetch.Result{}, map[string]bool{}
	for _, e := range index {
		if _, err := fetch.ParseAddress(e.Address); !fetch.IsAddress(e.Address) || err != nil {
			return nil, fmt.Errorf("the bundle's index has the address %q, which nothing is fetched from", fetch.WithoutCredentials(e.Address))
		}
		data, ok := contents[e.SHA256]
		_, twice := fetched[e.Address]
		switch {
		case twice:
			return nil, fmt.Errorf("the bundle's index names %q twice", e.Address)
		case !ok:
			return nil, fmt.Errorf("the bundle's index says that %q has the digest sha256:%s, and the bundle has no such contents", e.Address, e.SHA256)
		case int64(len(data)) != e.Size:
			return nil, fmt.Errorf("the bundle's index says that %q has %d bytes, and it has %d", e.Address, e.Size, len(data))
		case len(data) > fetch.MaxBytes:
			return nil, fmt.Errorf("what was fetched from %q is larger than %d MiB", e.Address, fetch.MaxBytes>>20)
		}
		fetched[e.Address] = fetch.Result{Contents: data}
		named[e.SHA256] = true
	}
	for _, sum := range slices.Sorted(maps.Keys(contents)) {
		if !named[sum] {
			return nil, fmt.Errorf("the bundle has contents sha256:%s that its index does not name", sum)
		}
	}
	return fetched, nil
}
