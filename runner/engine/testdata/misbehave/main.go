// Misbehave is the program in the pods of the fault corpus: it serves /healthz, and goes
// wrong as its flags say. A POST of more flags to /set ends it, and it is started again with
// them: so it goes wrong without any change of an object.
package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	exitAfter := flag.Duration("exit-after", 0, "end with exit code 1 after this time")
	exitOnce := flag.String("exit-once", "", "end with exit code 1 if this file is not there, and leave it")
	slow := flag.Duration("slow", 0, "be ready after this time")
	alloc := flag.Int("alloc", 0, "hold so many MiB of memory")
	fill := flag.String("fill", "", "fill this directory, and be ready only while a byte fits")
	config := flag.String("config", "", "end unless this file is JSON")
	cert := flag.String("cert", "", "be ready only while this certificate is good")
	needs := flag.String("needs", "", "be ready only while this address answers")
	done := flag.Bool("done", false, "end at once, with exit code 0")
	never := flag.Bool("never", false, "never be ready")
	state := flag.String("state", "/state/args", "where the flags of /set are kept, one a line")
	flag.Parse()
	if raw, err := os.ReadFile(*state); err == nil {
		if err := flag.CommandLine.Parse(strings.Fields(string(raw))); err != nil {
			log.Fatal(err)
		}
	}

	if *done {
		return
	}
	if *exitOnce != "" {
		if _, err := os.Stat(*exitOnce); errors.Is(err, os.ErrNotExist) {
			if err := os.WriteFile(*exitOnce, nil, 0o600); err != nil {
				log.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			log.Fatal("ends once")
		}
	}
	if *config != "" {
		raw, err := os.ReadFile(*config)
		if err != nil {
			log.Fatal(err)
		}
		if !json.Valid(raw) {
			log.Fatalf("%s is not JSON", *config)
		}
	}
	held := make([][]byte, 0, *alloc)
	for range *alloc {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
	if *fill != "" {
		_ = os.WriteFile(filepath.Join(*fill, "big"), make([]byte, 64<<20), 0o600) // as much as fits
	}
	if *exitAfter > 0 {
		time.AfterFunc(*exitAfter, func() { log.Fatal("ends as it was asked to") })
	}
	began := time.Now()
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(*never, time.Since(began) < *slow, *fill, *cert, *needs); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok", len(held))
	})
	http.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(io.LimitReader(r.Body, 4096))
		if err == nil {
			err = os.WriteFile(*state, raw, 0o600)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		time.AfterFunc(100*time.Millisecond, func() { os.Exit(0) })
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func ready(never, starting bool, fill, cert, needs string) error {
	switch {
	case never:
		return errors.New("never ready")
	case starting:
		return errors.New("still starting")
	}
	if fill != "" {
		if err := os.WriteFile(filepath.Join(fill, "more"), make([]byte, 1<<20), 0o600); err != nil {
			return err
		}
	}
	if cert != "" {
		raw, err := os.ReadFile(cert)
		if err != nil {
			return err
		}
		block, _ := pem.Decode(raw)
		if block == nil {
			return errors.New("no certificate")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if time.Now().After(c.NotAfter) {
			return fmt.Errorf("the certificate expired at %s", c.NotAfter)
		}
	}
	if needs != "" {
		conn, err := net.DialTimeout("tcp", needs, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return nil
}
