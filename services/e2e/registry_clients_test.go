package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

// ociClient is a program of others that people use with the org's registry. In its
// arguments HOST, REPO (the org's folder there) and DIR (a new folder) are replaced.
type ociClient struct {
	name    string
	version []string
	// reads are what a token that pulls allows.
	reads [][]string
	// writes are what it does not allow.
	writes [][]string
	// login reads the token from stdin and keeps it where the client likes; nil where
	// that is not tried.
	login []string
	// path is where the client is, when it is not in PATH by its name.
	path string
}

var ociClients = []ociClient{
	{
		name: "skopeo", version: []string{"--version"},
		reads: [][]string{
			{"inspect", "--tls-verify=false", "docker://HOST/REPO/web:1.0"},
			{"list-tags", "--tls-verify=false", "docker://HOST/REPO/web"},
			{"copy", "--insecure-policy", "--src-tls-verify=false", "docker://HOST/REPO/web:1.0", "oci:DIR:x"},
		},
		writes: [][]string{
			{"copy", "--insecure-policy", "--src-tls-verify=false", "--dest-tls-verify=false", "docker://HOST/REPO/web:1.0", "docker://HOST/REPO/web:stolen"},
			{"delete", "--tls-verify=false", "docker://HOST/REPO/web:1.0"},
		},
		login: []string{"login", "--tls-verify=false", "--username", "x", "--password-stdin", "HOST"},
	},
	{
		name: "crane", version: []string{"version"},
		reads: [][]string{
			{"digest", "HOST/REPO/web:1.0"}, {"ls", "HOST/REPO/web"}, {"pull", "--format=oci", "HOST/REPO/web:1.0", "DIR"},
			{"validate", "--remote", "HOST/REPO/web:1.0"},
		},
		writes: [][]string{{"tag", "HOST/REPO/web:1.0", "stolen"}, {"copy", "HOST/REPO/web:1.0", "HOST/REPO/other:1.0"}},
		login:  []string{"auth", "login", "HOST", "-u", "x", "--password-stdin"},
	},
	{
		name: "oras", version: []string{"version"},
		reads: [][]string{
			{"discover", "--plain-http", "HOST/REPO/web:1.0"}, {"repo", "tags", "--plain-http", "HOST/REPO/web"},
			{"copy", "--recursive", "--from-plain-http", "HOST/REPO/web:1.0", "--to-oci-layout", "DIR:x"},
		},
		writes: [][]string{{"tag", "--plain-http", "HOST/REPO/web:1.0", "stolen"}},
		login:  []string{"login", "--plain-http", "--username", "x", "--password-stdin", "HOST"},
	},
	{
		name: "docker", version: []string{"--version"},
		// Its own login asks the engine which registries may speak http, and there is none.
		reads: [][]string{{"manifest", "inspect", "--insecure", "HOST/REPO/web:1.0"}},
	},
	{
		name: "helm", version: []string{"version", "--short"}, path: os.Getenv("HELM"),
		reads: [][]string{
			{"show", "chart", "--plain-http", "oci://HOST/REPO/charts/hello", "--version", "0.1.0"},
			{"pull", "--plain-http", "--destination", "DIR", "oci://HOST/REPO/charts/hello", "--version", ">=0.1.0"},
		},
		login: []string{"registry", "login", "--plain-http", "--username", "x", "--password-stdin", "HOST"},
	},
	{
		name: "cosign", version: []string{"version"},
		reads: [][]string{{"tree", "--allow-http-registry", "HOST/REPO/web:1.0"}},
		login: []string{"login", "--username", "x", "--password-stdin", "HOST"},
	},
}

// find tells where the client is: in the folder that dev/scripts/oci.sh builds into, or
// in PATH.
func (c ociClient) find() (string, error) {
	if c.path != "" {
		return c.path, nil
	}
	if dir := os.Getenv("BERTH_OCI_TOOLS"); dir != "" {
		if path := filepath.Join(dir, c.name); exec.Command(path, c.version...).Run() == nil {
			return path, nil
		}
	}
	return exec.LookPath(c.name)
}

// TestRegistryClients: after berth registry login, the clients that people have pull
// from the org's registry, and do nothing else there; by their own login with berth
// registry token as well. When the token ends, they get nothing.
//
// BERTH_CLIENTS_REPORT names a file for a table of what was tried.
func TestRegistryClients(t *testing.T) {
	t.Parallel()
	s := start(t)
	shelf := s.shelf()
	var report strings.Builder
	for _, c := range ociClients {
		t.Run(c.name, func(t *testing.T) {
			path, err := c.find()
			if err != nil {
				t.Skipf("%s is not on this machine (dev/scripts/oci.sh builds what it can)", c.name)
			}
			d := &desk{t: t, system: s, client: c, path: path, replace: shelf}
			version, err := d.run("", c.version...)
			if err != nil {
				t.Fatalf("%v\n%s", err, version)
			}
			built, err := os.ReadFile(path + ".version") // as dev/scripts/oci.sh has it
			if err == nil {
				version = string(built)
			}
			fmt.Fprintf(&report, "| %s | %s | %d | %d |\n", c.name, firstVersion(version), len(c.reads), len(c.writes))
			d.try()
		})
	}
	if file := os.Getenv("BERTH_CLIENTS_REPORT"); file != "" && !t.Failed() {
		if err := os.WriteFile(file, []byte(report.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// desk is where a person tries a client, with a home of its own.
type desk struct {
	t       *testing.T
	system  *system
	client  ociClient
	path    string
	replace *strings.Replacer
	home    string
}

// try goes through both ways to log in.
func (d *desk) try() {
	d.sit()
	if out, err := d.run("", d.client.reads[0]...); err == nil {
		d.t.Fatalf("%s reads without a login:\n%s", d.client.name, out)
	}
	said := d.berth("registry", "login", "--minutes", "5")
	if strings.Contains(said, "brg_") {
		d.t.Errorf("berth registry login prints the token: %s", said)
	}
	if info, err := os.Stat(filepath.Join(d.home, ".docker", "config.json")); err != nil || info.Mode().Perm() != 0o600 {
		d.t.Errorf("the configuration is %v, %v", info, err)
	}
	d.reads("after berth registry login")
	for _, args := range d.client.writes {
		if out, err := d.run("", args...); err == nil {
			d.t.Errorf("%s %s is allowed:\n%s", d.client.name, strings.Join(args, " "), out)
		} else if text := strings.ToLower(out); !strings.Contains(text, "denied") && !strings.Contains(text, "forbidden") && !strings.Contains(text, "403") {
			d.t.Errorf("%s %s does not say that it is not allowed:\n%s", d.client.name, strings.Join(args, " "), out)
		}
	}
	d.end("expires_at = now() - interval '1 second'", "that has expired")

	if d.client.login == nil {
		return
	}
	d.sit()
	token := strings.TrimSpace(d.berth("registry", "token"))
	if out, err := d.run(token, d.client.login...); err != nil || strings.Contains(out, token) {
		d.t.Fatalf("%s: %v\n%s", strings.Join(d.client.login, " "), err, out)
	}
	d.reads("after its own login")
	d.end("revoked_at = now()", "that was revoked")
}

// sit gives the client a new home.
func (d *desk) sit() {
	d.t.Helper()
	d.home = d.t.TempDir()
}

func (d *desk) reads(when string) {
	d.t.Helper()
	for _, args := range d.client.reads {
		if out, err := d.run("", args...); err != nil {
			d.t.Errorf("%s, %s %s: %v\n%s", when, d.client.name, strings.Join(args, " "), err, out)
		}
	}
}

// end ends all tokens of people, after which the client gets nothing.
func (d *desk) end(set, which string) {
	d.t.Helper()
	if _, err := d.system.database().Exec(d.t.Context(), "update berth.registry_tokens set "+set+" where token_id is not null"); err != nil {
		d.t.Fatal(err)
	}
	if out, err := d.run("", d.client.reads[0]...); err == nil {
		d.t.Errorf("%s reads with a token %s:\n%s", d.client.name, which, out)
	}
}

// env is that of a person who has just logged in to the machine.
func (d *desk) env() []string {
	return []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + d.home, "TMPDIR=" + d.home}
}

func (d *desk) run(stdin string, args ...string) (string, error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	typed := make([]string, len(args))
	for i, arg := range args {
		typed[i] = strings.ReplaceAll(d.replace.Replace(arg), "DIR", filepath.Join(d.home, fmt.Sprintf("out-%x", sha256.Sum256([]byte(rand.Text()))))[:len(d.home)+12])
		if dir, ok := strings.CutPrefix(typed[i], d.home); ok && d.client.name == "helm" {
			if err := os.MkdirAll(d.home+dir, 0o700); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(ctx, d.path, typed...)
	cmd.Env, cmd.Stdin = d.env(), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// berth runs a command of ours with the client's home, and the context of the system.
func (d *desk) berth(args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), filepath.Join(d.system.bin, "berth"), args...)
	cmd.Env = append(append(os.Environ(), d.system.env...), "HOME="+d.home, "DOCKER_CONFIG=", "BERTH_URL="+d.system.api, "BERTH_TOKEN="+d.system.token())
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("berth %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

// shelf fills the org's registry with an image that is signed, and a chart.
func (s *system) shelf() *strings.Replacer {
	s.t.Helper()
	var me struct {
		Org struct {
			ID string `json:"id"`
		} `json:"org"`
	}
	s.get("/me", &me)
	var made struct {
		Host   string `json:"host"`
		Secret string `json:"secret"`
	}
	s.post("/registry-tokens", map[string]any{}, &made)
	// Nobody gets a token that pushes from the API: builds push.
	pusher := "brg_" + rand.Text()
	hash := sha256.Sum256([]byte(pusher))
	if _, err := s.database().Exec(s.t.Context(), `insert into berth.registry_tokens (hash, org_id, actions, expires_at) values ($1, $2, '{pull,push}', now() + interval '5 minutes')`, hash[:], me.Org.ID); err != nil {
		s.t.Fatal(err)
	}
	layout, err := oci.Open(s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	folder := me.Org.ID + "/shop"
	put := func(mediaType string, raw []byte) ocispec.Descriptor {
		s.t.Helper()
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		if err := layout.Push(s.t.Context(), desc, bytes.NewReader(raw)); err != nil && !strings.Contains(err.Error(), "already exists") {
			s.t.Fatal(err)
		}
		return desc
	}
	push := func(repository, tag string, m ocispec.Manifest) ocispec.Descriptor {
		s.t.Helper()
		m.Versioned, m.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageManifest
		raw, err := json.Marshal(m)
		if err != nil {
			s.t.Fatal(err)
		}
		desc := put(ocispec.MediaTypeImageManifest, raw)
		to := oci.Remote{Registry: made.Host, Repository: folder + "/" + repository, PlainHTTP: true, Token: func(context.Context) (string, error) { return pusher, nil }}
		if _, err := to.Push(s.t.Context(), layout, desc.Digest.String(), oci.TransferOptions{Tag: tag}); err != nil {
			s.t.Fatal(err)
		}
		return desc
	}
	plain, packed := archive(s.t, "hello.txt", "hello")
	config, err := json.Marshal(ocispec.Image{
		Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"}, RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{plain}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	image := push("web", "1.0", ocispec.Manifest{Config: put(ocispec.MediaTypeImageConfig, config), Layers: []ocispec.Descriptor{put(ocispec.MediaTypeImageLayerGzip, packed)}})
	push("web", "", ocispec.Manifest{
		ArtifactType: "application/vnd.example.sbom", Subject: &image, Config: put(ocispec.MediaTypeEmptyJSON, []byte("{}")),
		Layers: []ocispec.Descriptor{put("application/spdx+json", []byte(`{"spdxVersion":"SPDX-2.3"}`))},
	})
	const about = `{"apiVersion":"v2","name":"hello","version":"0.1.0"}`
	_, chart := archive(s.t, "hello/Chart.yaml", "apiVersion: v2\nname: hello\nversion: 0.1.0\n")
	push("charts/hello", "0.1.0", ocispec.Manifest{
		Config: put("application/vnd.cncf.helm.config.v1+json", []byte(about)),
		Layers: []ocispec.Descriptor{put("application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart)},
	})
	return strings.NewReplacer("HOST", made.Host, "REPO", folder)
}

// archive packs one file, and digests it before it is compressed.
func archive(t *testing.T, name, text string) (plain digest.Digest, packed []byte) {
	t.Helper()
	var all, compressed bytes.Buffer
	files := tar.NewWriter(&all)
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write(all.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return digest.FromBytes(all.Bytes()), compressed.Bytes()
}

// firstVersion is the first thing that looks like a version in what a client says.
func firstVersion(said string) string {
	for word := range strings.FieldsSeq(said) {
		if word = strings.Trim(word, ",v"); strings.Count(word, ".") >= 2 && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return strings.TrimSpace(strings.SplitN(said, "\n", 2)[0])
}
