package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is a kubeconfig, as far as it is looked into. What is inside of its
// clusters and users stays as it is written.
type document struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Contexts       []namedContext `json:"contexts"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
}

type namedContext struct {
	Name    string         `json:"name"`
	Context map[string]any `json:"context"`
}

type namedCluster struct {
	Name    string         `json:"name"`
	Cluster map[string]any `json:"cluster"`
}

type namedUser struct {
	Name string         `json:"name"`
	User map[string]any `json:"user"`
}

// Parse reads a kubeconfig, keeps its current context alone, and puts the files
// that it names into it; relative names are relative to dir.
func Parse(raw []byte, dir string) (Access, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return Access{}, fmt.Errorf("is not a kubeconfig: %w", err)
	}
	context, cluster, user, err := d.current()
	if err != nil {
		return Access{}, err
	}
	if err := errors.Join(
		embed(cluster.Cluster, "certificate-authority", dir),
		embed(user.User, "client-certificate", dir),
		embed(user.User, "client-key", dir),
		embedToken(user.User, dir),
	); err != nil {
		return Access{}, err
	}
	if exec := object(user.User, "exec"); exec != nil {
		if command := text(exec, "command"); strings.ContainsRune(command, filepath.Separator) {
			exec["command"] = below(dir, command)
		}
	}
	a := Access{Server: text(cluster.Cluster, "server"), Secrets: secrets(cluster.Cluster, user.User)}
	if a.Server == "" {
		return Access{}, fmt.Errorf("cluster %q has no server", cluster.Name)
	}
	if a.Authority, err = base64.StdEncoding.DecodeString(text(cluster.Cluster, "certificate-authority-data")); err != nil {
		return Access{}, errors.New("certificate-authority-data is not base64")
	}
	a.Kubeconfig, err = yaml.Marshal(document{
		APIVersion: "v1", Kind: "Config", CurrentContext: context.Name,
		Contexts: []namedContext{context}, Clusters: []namedCluster{cluster}, Users: []namedUser{user},
	})
	return a, err
}

// current finds what the current context names.
func (d document) current() (context namedContext, cluster namedCluster, user namedUser, err error) {
	if d.CurrentContext == "" {
		return context, cluster, user, errors.New("no current-context is set; choose one with `kubectl config use-context NAME`")
	}
	i := slices.IndexFunc(d.Contexts, func(c namedContext) bool { return c.Name == d.CurrentContext })
	if i < 0 {
		return context, cluster, user, fmt.Errorf("its current-context %q is not in it", d.CurrentContext)
	}
	context = d.Contexts[i]
	name := text(context.Context, "cluster")
	if i = slices.IndexFunc(d.Clusters, func(c namedCluster) bool { return c.Name == name }); i < 0 {
		return context, cluster, user, fmt.Errorf("context %q names the cluster %q, which is not in it", context.Name, name)
	}
	cluster = d.Clusters[i]
	name = text(context.Context, "user")
	if i = slices.IndexFunc(d.Users, func(u namedUser) bool { return u.Name == name }); i < 0 {
		return context, cluster, user, fmt.Errorf("context %q names the user %q, which is not in it", context.Name, name)
	}
	user = d.Users[i]
	if user.User == nil {
		user.User = map[string]any{}
	}
	return context, cluster, user, nil
}

// embed replaces a file's name with its contents. As in kubectl, data given in
// addition to the name wins.
func embed(in map[string]any, key, dir string) error {
	path := text(in, key)
	delete(in, key)
	if path == "" || text(in, key+"-data") != "" {
		return nil
	}
	raw, err := readFile(below(dir, path))
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	in[key+"-data"] = base64.StdEncoding.EncodeToString(raw)
	return nil
}

// embedToken is embed of a token's file, which counts more than a token.
func embedToken(user map[string]any, dir string) error {
	path := text(user, "tokenFile")
	delete(user, "tokenFile")
	if path == "" {
		return nil
	}
	raw, err := readFile(below(dir, path))
	if err != nil {
		return fmt.Errorf("tokenFile: %w", err)
	}
	user["token"] = strings.TrimSpace(string(raw))
	return nil
}

// secrets are the values that open the cluster.
func secrets(cluster, user map[string]any) []string {
	found := []string{text(user, "token"), text(user, "password")}
	if key, err := base64.StdEncoding.DecodeString(text(user, "client-key-data")); err == nil {
		found = append(found, string(key))
	}
	if proxy, err := url.Parse(text(cluster, "proxy-url")); err == nil {
		password, _ := proxy.User.Password()
		found = append(found, password)
	}
	for name, value := range object(object(user, "auth-provider"), "config") {
		if s, ok := value.(string); ok && secretName(name) {
			found = append(found, s)
		}
	}
	env, _ := object(user, "exec")["env"].([]any)
	for _, item := range env {
		if variable, ok := item.(map[string]any); ok && secretName(text(variable, "name")) {
			found = append(found, text(variable, "value"))
		}
	}
	return slices.DeleteFunc(found, func(s string) bool { return s == "" })
}

// secretName tells whether a setting of that name is to be kept secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "password", "key"}, func(part string) bool { return strings.Contains(name, part) })
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func text(in map[string]any, key string) string {
	s, _ := in[key].(string)
	return s
}

func object(in map[string]any, key string) map[string]any {
	m, _ := in[key].(map[string]any)
	return m
}
