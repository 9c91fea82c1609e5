package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"

	"sigs.k8s.io/yaml"
)

// Connect makes a client that calls the cluster as the kubeconfig of access
// says, running its exec plugin once when there is one.
func Connect(ctx context.Context, access Access) (*Client, error) {
	var d document
	if err := yaml.Unmarshal(access.Kubeconfig, &d); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	_, cluster, user, err := d.current()
	if err != nil {
		return nil, err
	}
	credential := execStatus{Token: text(user.User, "token")}
	for name, to := range map[string]*string{"client-certificate-data": &credential.ClientCertificateData, "client-key-data": &credential.ClientKeyData} {
		raw, err := base64.StdEncoding.DecodeString(text(user.User, name))
		if err != nil {
			return nil, fmt.Errorf("%s is not base64", name)
		}
		*to = string(raw)
	}
	if plugin := object(user.User, "exec"); plugin != nil {
		if credential, err = runPlugin(ctx, plugin); err != nil {
			return nil, err
		}
	}
	insecure, _ := cluster.Cluster["insecure-skip-tls-verify"].(bool)
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: text(cluster.Cluster, "tls-server-name"),
		InsecureSkipVerify: insecure, //nolint:gosec // G402: as the customer's kubeconfig says
	}
	if credential.ClientCertificateData != "" {
		pair, err := tls.X509KeyPair([]byte(credential.ClientCertificateData), []byte(credential.ClientKeyData))
		if err != nil {
			return nil, fmt.Errorf("client certificate of the kubeconfig: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	proxy := http.ProxyFromEnvironment
	if own := text(cluster.Cluster, "proxy-url"); own != "" {
		u, err := url.Parse(own)
		if err != nil {
			return nil, errors.New("proxy-url of the kubeconfig is not an address")
		}
		proxy = http.ProxyURL(u)
	}
	c, err := newClient(access.Server, config, access.Authority, proxy)
	if err != nil {
		return nil, err
	}
	username, password := text(user.User, "username"), text(user.User, "password")
	c.authorize = func(req *http.Request) error {
		switch {
		case credential.Token != "":
			req.Header.Set("Authorization", "Bearer "+credential.Token)
		case username != "":
			req.SetBasicAuth(username, password)
		}
		return nil
	}
	return c, nil
}

// execStatus is what an exec plugin answers.
type execStatus struct {
	Token                 string `json:"token"`
	ClientCertificateData string `json:"clientCertificateData"`
	ClientKeyData         string `json:"clientKeyData"`
}

// runPlugin runs the command of a kubeconfig that fetches credentials, as
// kubectl does.
func runPlugin(ctx context.Context, plugin map[string]any) (execStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	command := text(plugin, "command")
	var args []string
	list, _ := plugin["args"].([]any)
	for _, item := range list {
		arg, _ := item.(string)
		args = append(args, arg)
	}
	info, err := json.Marshal(map[string]any{
		"apiVersion": text(plugin, "apiVersion"), "kind": "ExecCredential", "spec": map[string]any{"interactive": false},
	})
	if err != nil {
		return execStatus{}, err
	}
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	variables, _ := plugin["env"].([]any)
	for _, item := range variables {
		if v, ok := item.(map[string]any); ok {
			cmd.Env = append(cmd.Env, text(v, "name")+"="+text(v, "value"))
		}
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return execStatus{}, fmt.Errorf("command %s of the kubeconfig: %w", command, err)
	}
	var answer struct {
		Status execStatus `json:"status"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return execStatus{}, fmt.Errorf("command %s of the kubeconfig did not answer a credential", command)
	}
	return answer.Status, nil
}
