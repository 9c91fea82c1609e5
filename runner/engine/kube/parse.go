package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ParseObjects reads the objects of a YAML or JSON stream, in their order. Empty
// documents are skipped, lists are opened. Errors name the document, from 1.
func ParseObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		found, err := parseDocument(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		objects = append(objects, found...)
	}
}

func parseDocument(doc []byte) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSONStrict(doc) // twice the same key is a mistake
	if err != nil {
		return nil, err
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if data[0] != '{' {
		return nil, errors.New("it is no object")
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if !obj.IsList() {
		return []*unstructured.Unstructured{obj}, check(obj)
	}
	list, err := obj.ToList()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		if err := check(&list.Items[i]); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

func check(obj *unstructured.Unstructured) error {
	switch {
	case obj.GetAPIVersion() == "":
		return errors.New("there is no apiVersion")
	case obj.GetKind() == "":
		return errors.New("there is no kind")
	case obj.GetName() == "" && obj.GetGenerateName() != "":
		return fmt.Errorf("%s: generateName makes another object each time; give it a name", obj.GetKind())
	case obj.GetName() == "":
		return fmt.Errorf("%s: there is no metadata.name", obj.GetKind())
	}
	return nil
}
