package guardrail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/policy"
)

// maxTried is how much of one file is read, in bytes.
const maxTried = 64 << 20

// ReadDocuments makes documents of files, to try guardrails on: manifests with objects, as
// they would be made; what `terraform show -json` says of a plan; or documents as a plan
// leaves them. A folder is read with all below it.
func ReadDocuments(path string) ([]policy.Document, error) {
	var list []policy.Document
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.Size() > maxTried {
			err = fmt.Errorf("it is longer than %d bytes", maxTried)
		}
		var raw []byte
		if err == nil {
			raw, err = os.ReadFile(file)
		}
		var found []policy.Document
		if err == nil {
			found, err = documentsOf(filepath.Base(file), raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, found...)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no manifest, no plan and no documents", path)
	}
	return list, err
}

func documentsOf(name string, raw []byte) ([]policy.Document, error) {
	if text := bytes.TrimSpace(raw); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return ofJSON(name, text)
	}
	var list []policy.Document
	for i, part := range strings.Split("\n"+string(raw), "\n---") {
		text, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i+1, err)
		}
		if string(text) == "null" {
			continue
		}
		found, err := ofJSON(name, text)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i+1, err)
		}
		list = append(list, found...)
	}
	return list, nil
}

func ofJSON(name string, raw []byte) ([]policy.Document, error) {
	var documents []policy.Document
	if raw[0] == '[' {
		err := json.Unmarshal(raw, &documents)
		return documents, err
	}
	var shape struct {
		head
		Documents       []policy.Document `json:"documents"`
		ResourceChanges json.RawMessage   `json:"resource_changes"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, err
	}
	switch {
	case shape.Documents != nil:
		return shape.Documents, nil
	case shape.ResourceChanges != nil:
		return []policy.Document{{Form: policy.FormPlan, Of: "terraform_module", Component: "tried", Name: "plan " + name, Body: raw}}, nil
	case strings.HasSuffix(shape.Kind, "List") && shape.Items != nil:
		for _, item := range shape.Items {
			found, err := ofJSON(name, item)
			if err != nil {
				return nil, err
			}
			documents = append(documents, found...)
		}
		return documents, nil
	case shape.APIVersion != "" && shape.Kind != "":
		d := policy.Document{Form: policy.FormObject, Of: "kubernetes_manifest", Component: "tried", Operation: policy.Create, Body: raw}
		d.Name = strings.TrimSpace(shape.Kind + " " + strings.TrimPrefix(shape.Metadata.Namespace+"/"+shape.Metadata.Name, "/"))
		return []policy.Document{d}, nil
	}
	return nil, errors.New("it is neither an object of Kubernetes, nor a plan of Terraform, nor documents")
}
