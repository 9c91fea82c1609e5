package modulefetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// rewrite has the calls of a module lead to paths: sources are by the call's name. A
// path has no version.
func rewrite(dir string, files []string, sources map[string]string) error {
	for _, name := range files {
		file := filepath.Join(dir, name)
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		out, err := rewriteHCL(src, sources)
		if strings.HasSuffix(name, ".json") {
			out, err = rewriteJSON(src, sources)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(src, out) {
			if err := os.WriteFile(file, out, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func rewriteHCL(src []byte, sources map[string]string) ([]byte, error) {
	file, diags := hclwrite.ParseConfig(src, "", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	changed := false
	for _, block := range file.Body().Blocks() {
		labels := block.Labels()
		if block.Type() != "module" || len(labels) != 1 || sources[labels[0]] == "" {
			continue
		}
		body := block.Body()
		if body.GetAttribute("source") != nil {
			body.SetAttributeValue("source", cty.StringVal(sources[labels[0]]))
			changed = true
		}
		changed = body.RemoveAttribute("version") != nil || changed
	}
	if !changed {
		return src, nil
	}
	return file.Bytes(), nil
}

func rewriteJSON(src []byte, sources map[string]string) ([]byte, error) {
	var root map[string]any
	in := json.NewDecoder(bytes.NewReader(src))
	in.UseNumber()
	if err := in.Decode(&root); err != nil {
		return nil, err
	}
	changed := false
	each(root["module"], func(calls map[string]any) {
		for name, body := range calls {
			to := sources[name]
			if to == "" {
				continue
			}
			each(body, func(call map[string]any) {
				if _, there := call["source"]; there {
					call["source"] = to
				}
				delete(call, "version")
				changed = true
			})
		}
	})
	if !changed {
		return src, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(root)
	return out.Bytes(), err
}

// each does something with an object, or with each object of a list: JSON says blocks
// both ways.
func each(v any, do func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		do(v)
	case []any:
		for _, item := range v {
			each(item, do)
		}
	}
}
