package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// maxManifest is the most bytes that a manifest has; registries agree on 4 MiB.
const maxManifest = 4 << 20

// next is the file that a manifest is written to before it gets its name.
const next = ".next"

// A store is the library's registry, which keeps blobs in a directory but
// manifests in memory. The store writes down each accepted push of a manifest,
// and pushes them again when it is opened.
type store struct {
	registry  http.Handler
	manifests string     // directory: one file per repository and tag or digest
	writing   sync.Mutex // keeps the registry and the directory in step
}

// A manifest is as it was pushed.
type manifest struct {
	Path string // of the request, as in /v2/team/web/manifests/1.0
	Type string // its media type
	Body []byte
}

// open serves what is in dir, which is made when it is missing.
func open(dir string) (*store, error) {
	blobs := filepath.Join(dir, "blobs")
	s := &store{manifests: filepath.Join(dir, "manifests")}
	for _, d := range []string{blobs, s.manifests} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	s.registry = registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0)), // it logs each request
	)
	return s, s.load()
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if (r.Method != http.MethodPut && r.Method != http.MethodDelete) || !strings.Contains(r.URL.Path, "/manifests/") {
		s.registry.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	code := s.change(w, r, manifest{Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Body: body})
	if code >= http.StatusInternalServerError {
		log.Printf("%s %s: %d", r.Method, r.URL.Path, code)
	}
}

// change writes a manifest down, or removes it, once the registry took it. It
// returns the status of its answer.
func (s *store) change(w http.ResponseWriter, r *http.Request, m manifest) int {
	answer := httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(m.Body))
	s.registry.ServeHTTP(answer, r)
	code := answer.Code
	if code < http.StatusMultipleChoices {
		var err error
		if r.Method == http.MethodPut {
			err = s.keep(m, answer.Header().Get("Docker-Content-Digest"))
		} else {
			err = os.Remove(s.file(m.Path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			http.Error(w, "the manifest could not be written down", http.StatusInternalServerError)
			return http.StatusInternalServerError
		}
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(code)
	_, _ = w.Write(answer.Body.Bytes()) // the client went away
	return code
}

// file is where the manifest of a request's path is kept.
func (s *store) file(request string) string {
	return filepath.Join(s.manifests, url.PathEscape(request))
}

// keep writes a manifest under the name that it was pushed with and under its
// digest, which stays when the tag moves on. A crash leaves whole files.
func (s *store) keep(m manifest, digest string) error {
	repository, name := path.Split(m.Path)
	for _, name := range []string{digest, name} {
		m.Path = repository + name
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		file := filepath.Join(s.manifests, next)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
		if err := os.Rename(file, s.file(m.Path)); err != nil {
			return err
		}
	}
	return nil
}

// load pushes all kept manifests. An index is taken only after what it lists,
// so it goes round until nothing is left or nothing more is taken.
func (s *store) load() error {
	entries, err := os.ReadDir(s.manifests)
	if err != nil {
		return err
	}
	var files []string
	for _, entry := range entries {
		if entry.Name() != next {
			files = append(files, filepath.Join(s.manifests, entry.Name()))
		}
	}
	for len(files) > 0 {
		var left []string
		var why error
		for _, file := range files {
			if err := s.push(file); err != nil {
				left, why = append(left, file), err
			}
		}
		if len(left) == len(files) {
			return why
		}
		files = left
	}
	return nil
}

func (s *store) push(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r := httptest.NewRequest(http.MethodPut, "/", bytes.NewReader(m.Body))
	r.URL.Path = m.Path
	r.Header.Set("Content-Type", m.Type)
	answer := httptest.NewRecorder()
	s.registry.ServeHTTP(answer, r)
	if answer.Code >= http.StatusMultipleChoices {
		return fmt.Errorf("%s: %s", file, answer.Body)
	}
	return nil
}
