package pluginstate

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// Keeper brings and takes the state of one attempt.
type Keeper struct {
	Proxy *stateproxy.Proxy
	// Dir is the attempt's own directory, Engine the one that its engine sees.
	Dir, Engine string
	// Salt makes the digests of contents.
	Salt []byte
}

// base is what Bring gave, without what is in it. It is kept with the attempt, for an
// agent that is started again.
type base struct {
	Lineage string `json:"lineage"`
	Serial  int64  `json:"serial"`
	// Digest is the salted digest of the files.
	Digest string `json:"digest"`
}

// Bring locks the state for a job that mutates, and puts it where the engine finds
// it.
func (k Keeper) Bring(ctx context.Context) error {
	body, err := k.Proxy.Hold(ctx)
	if err != nil {
		return fmt.Errorf("state of the plugin: %w", err)
	}
	d, err := Parse(body)
	if err != nil {
		return err
	}
	digest, err := k.digest(d.Plugin.Files)
	if err != nil {
		return err
	}
	// The lineage of a first state is made up here: handed in twice, it is the same.
	if err := datadir.WriteJSON(k.basePath(), base{Lineage: cmp.Or(d.Lineage, rand.Text()), Serial: d.Serial, Digest: digest}); err != nil {
		return err
	}
	return d.Plugin.Files.Write(filepath.Join(k.Engine, "in", "state"))
}

// Take hands in what the plugin left, if it is not what it was given. It returns the
// new serial, 0 when nothing moved. An engine that never gave the plugin its state
// changed nothing. An attempt whose lease was lost hands in nothing: its state is kept
// as evidence, sealed. Call it when the engine is over; it may be repeated.
func (k Keeper) Take(ctx context.Context, lost bool) (serial int64, err error) {
	var was base
	if found, err := datadir.ReadJSON(k.basePath(), &was); err != nil || !found {
		return 0, err
	}
	root, err := os.OpenRoot(k.Engine)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	left, err := root.OpenRoot(filepath.FromSlash("work/plugin/" + plugin.StateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer left.Close()
	files, err := plugin.ReadState(left.FS())
	if err != nil {
		return 0, err
	}
	digest, err := k.digest(files)
	if err != nil || digest == was.Digest {
		return 0, err
	}
	body, err := json.Marshal(Document{Serial: was.Serial, Lineage: was.Lineage}.Next(files))
	if err != nil {
		return 0, err
	}
	if lost {
		return 0, k.Proxy.SetAside(body, errors.New("the lease of the job was lost"))
	}
	return k.Proxy.Push(ctx, body)
}

func (k Keeper) basePath() string { return filepath.Join(k.Dir, "given-state.json") }

// digest names files by their content. Empty files of a state that was never written
// and of one that was emptied are the same.
func (k Keeper) digest(files plugin.State) (string, error) {
	if len(files) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(files) // maps are written in the order of their keys
	return stateproxy.Digest(k.Salt, raw), err
}
