package evidence

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

// Names of what is in a folder.
const (
	IndexFile   = "index.json"
	ChainFile   = "chain.jsonl"
	TrustFile   = "trust.json"
	ChangesJSON = "changes.json"
	ChangesCSV  = "changes.csv"
	OrdersDir   = "orders"
	PlansDir    = "plans"
	EgressDir   = "egress"
	LogsDir     = "logs"
)

// IndexType is the payload type of a signed index.
const IndexType = "application/vnd.berth.evidence.v1+json"

// Index lists all files of a folder.
type Index struct {
	InstallID string     `json:"install_id"`
	RunnerID  string     `json:"runner_id"`
	Version   string     `json:"version"` // of the runner that made it
	Since     time.Time  `json:"since"`
	MadeAt    time.Time  `json:"made_at"`
	ChainHead chain.Head `json:"chain_head"`
	// Machine is the key that signs the index, in base64.
	Machine string `json:"machine"`
	Files   []File `json:"files"`
}

// File is one of them.
type File struct {
	Path   string `json:"path"` // with slashes, below the folder
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
}

// Log says how the log of a job ended, as the control plane has it.
type Log struct {
	Job    string `json:"job_id"`
	Stream string `json:"stream_id"`
	Lines  int64  `json:"lines"`
	Hash   string `json:"hash"` // over all lines, see docs/reference/logs.md
}

// List finds all files of a folder but its index. Links and the like are an error.
func List(dir string) (files []File, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == IndexFile {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no file", rel)
		}
		f, err := fileOf(dir, filepath.ToSlash(rel))
		files = append(files, f)
		return err
	})
	return files, err
}

func fileOf(dir, name string) (f File, err error) {
	in, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return f, err
	}
	defer in.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	return File{Path: name, Size: size, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, err
}

// Seal writes the signed index of a folder.
func Seal(dir string, index Index, key ed25519.PrivateKey) error {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return errors.New("evidence: no Ed25519 key")
	}
	index.Machine = capsule.EncodePublicKey(public)
	var err error
	if index.Files, err = List(dir); err != nil {
		return err
	}
	env, err := capsule.Sign(key, capsule.KeyID(public), IndexType, index)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, IndexFile), raw, 0o600)
}

// OrderFile names the order of a job.
func OrderFile(job string) string { return path.Join(OrdersDir, job+".json") }

// PlanFile names the plan of a change.
func PlanFile(change string) string { return path.Join(PlansDir, change+".json") }
