package pulumi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// projectFiles are the names of the file of a project.
var projectFiles = []string{"Pulumi.yaml", "Pulumi.yml"}

// project is what is read of the project's file.
type project struct {
	file    string
	Name    string `json:"name"`
	Runtime any    `json:"runtime"` // a name, or an object with name and options
}

func readProject(dir string) (project, error) {
	for _, name := range projectFiles {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return project{}, err
		}
		p := project{file: name}
		if err := yaml.Unmarshal(raw, &p); err != nil {
			return p, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case p.Name == "":
			return p, fmt.Errorf("%s has no name", name)
		case p.runtime() == "":
			return p, fmt.Errorf("%s names no runtime", name)
		}
		return p, nil
	}
	return project{}, errors.New("there is no Pulumi.yaml in it, so it is no program of Pulumi")
}

// runtime is the name of the language.
func (p project) runtime() string {
	if name, ok := p.Runtime.(string); ok {
		return name
	}
	object, _ := p.Runtime.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// binary is the executable of a program that is built already, "" for none.
func (p project) binary() string {
	object, _ := p.Runtime.(map[string]any)
	options, _ := object["options"].(map[string]any)
	name, _ := options["binary"].(string)
	return name
}

// configKey is a key of the configuration with its namespace.
func (p project) configKey(key string) string {
	if strings.Contains(key, ":") {
		return key
	}
	return p.Name + ":" + key
}
