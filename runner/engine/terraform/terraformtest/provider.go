// Package terraformtest is a Terraform provider for tests: its resources are files, which a
// test edits behind Terraform's back. The test binary itself is the provider's program, so
// that nothing has to be fetched.
//
//	resource "world_file" "a" {
//	  path   = "/…"        # JSON with the other attributes
//	  text   = "…"
//	  secret = "…"         # sensitive
//	  # note is computed: who writes it is nobody's business
//	}
//
// It speaks version 6 of Terraform's protocol as far as that needs it.
package terraformtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// cookie is in the environment of each provider that Terraform starts.
const cookie = "TF_PLUGIN_MAGIC_COOKIE"

// IfProvider makes the process the provider, when Terraform started it as one. It is the
// first thing that TestMain calls.
func IfProvider() {
	if os.Getenv(cookie) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a socket's path could be too long
	if err != nil {
		return err
	}
	own, config, err := mutualTLS([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	if err != nil {
		return err
	}
	over := make(chan struct{})
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(s)
		if name == "/plugin.GRPCController/Shutdown" {
			close(over)
			return nil
		}
		handle, known := methods[filepath.Base(name)]
		if !known {
			return status.Error(codes.Unimplemented, name)
		}
		var in []byte
		if err := s.RecvMsg(&in); err != nil {
			return err
		}
		out, err := handle(in)
		if err != nil {
			return err
		}
		return s.SendMsg(&out)
	}))
	fmt.Printf("1|6|tcp|%s|grpc|%s\n", l.Addr(), base64.RawStdEncoding.EncodeToString(own))
	go func() { _ = server.Serve(l) }()
	<-over
	return nil
}

// mutualTLS makes a certificate, and takes only the client's.
func mutualTLS(client []byte) (own []byte, config *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if own, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		return nil, nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(client)
	return own, &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		Certificates: []tls.Certificate{{Certificate: [][]byte{own}, PrivateKey: key}},
	}, nil
}

// raw leaves messages as they are on the wire.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = append([]byte{}, data...); return nil }
func (raw) Name() string                       { return "raw" }

var methods = map[string]func([]byte) ([]byte, error){
	"GetProviderSchema":      func([]byte) ([]byte, error) { return schema(), nil },
	"ValidateProviderConfig": func([]byte) ([]byte, error) { return nil, nil },
	"ValidateResourceConfig": func([]byte) ([]byte, error) { return nil, nil },
	"ConfigureProvider":      func([]byte) ([]byte, error) { return nil, nil },
	"StopProvider":           func([]byte) ([]byte, error) { return nil, nil },
	"UpgradeResourceState": func(in []byte) ([]byte, error) {
		return field(nil, 1, field(nil, 2, get(get(in, 3), 1))), nil
	},
	"PlanResourceChange": func(in []byte) ([]byte, error) { return field(nil, 1, get(in, 3)), nil },
	"ReadResource":       readFile,
	"ApplyResourceChange": func(in []byte) ([]byte, error) {
		return field(nil, 1, get(in, 3)), writeFile(attributes(get(in, 2)), attributes(get(in, 3)))
	},
}

// attribute is one of world_file.
type attribute struct {
	name                                    string
	required, optional, computed, sensitive bool
}

func schema() []byte {
	var block []byte
	for _, a := range []attribute{
		{name: "path", required: true}, {name: "text", required: true}, {name: "secret", optional: true, sensitive: true}, {name: "note", computed: true},
	} {
		one := field(field(nil, 1, []byte(a.name)), 2, []byte(`"string"`))
		for n, is := range map[int]bool{4: a.required, 5: a.optional, 6: a.computed, 7: a.sensitive} {
			if is {
				one = append(one, byte(n<<3), 1)
			}
		}
		block = field(block, 2, one)
	}
	file := field(field(nil, 1, []byte("world_file")), 2, field(nil, 2, block))
	return field(field(nil, 1, field(nil, 2, nil)), 2, file)
}

func readFile(in []byte) ([]byte, error) {
	have := attributes(get(in, 2))
	path, _ := have["path"].(string)
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return field(nil, 1, field(nil, 2, []byte("null"))), nil
	}
	if err != nil {
		return nil, err
	}
	now := map[string]any{}
	if err := json.Unmarshal(text, &now); err != nil {
		return nil, err
	}
	for _, name := range []string{"text", "secret", "note"} {
		have[name] = now[name]
	}
	state, err := json.Marshal(have)
	return field(nil, 1, field(nil, 2, state)), err
}

func writeFile(before, after map[string]any) error {
	if after == nil {
		path, _ := before["path"].(string)
		return os.Remove(path)
	}
	path, _ := after["path"].(string)
	text, err := json.Marshal(map[string]any{"text": after["text"], "secret": after["secret"], "note": after["note"]})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
