package deploy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed manifest.yaml.tmpl
var source string

var manifest = template.Must(template.New("manifest").Funcs(template.FuncMap{"q": quote}).Option("missingkey=error").Parse(source))

// view is what the template sees.
type view struct {
	Options
	// ClusterName is that of the role of the whole cluster.
	ClusterName string
	// PastProxy is what is reached without the proxy: the cluster, and what the
	// customer names.
	PastProxy string
	// CodeDigest changes when the code does.
	CodeDigest string
	// RegistryToken is what the relays on the nodes show to the registry. It is
	// made from the code, so that the same options give the same manifest.
	RegistryToken string
}

// Manifest writes the manifest, or says everything that is wrong with the
// options.
func Manifest(o Options) ([]byte, error) {
	o = o.WithDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	past := []string{"127.0.0.1", "localhost", "$(KUBERNETES_SERVICE_HOST)", ".svc", ".cluster.local"}
	if o.NoProxy != "" {
		past = append(past, strings.ReplaceAll(o.NoProxy, "$", "$$")) // $(X) would be X's value
	}
	var out bytes.Buffer
	err := manifest.Execute(&out, view{
		Options: o, ClusterName: "berth-engine-" + o.Namespace, PastProxy: strings.Join(past, ","), CodeDigest: o.Code.Digest()[:16],
		RegistryToken: registryToken(o.CodeText),
	})
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return out.Bytes(), nil
}

func registryToken(code string) string {
	mac := hmac.New(sha256.New, []byte(code))
	mac.Write([]byte("berth-registry"))
	return hex.EncodeToString(mac.Sum(nil))
}

// quote writes text as YAML that is nothing but that text: a JSON string.
func quote(text string) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return strings.TrimSuffix(out.String(), "\n"), err
}
