package registry

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
)

var errTooLarge = errors.New("the blob is larger than the registry allows")

// serveUpload passes the bytes of a blob on as long as all chunks of it
// together stay within the limit. An upload past it is gone.
func (r *Registry) serveUpload(w http.ResponseWriter, req *http.Request, target route) {
	shelf := r.shelfOf(target.repository)
	if req.ContentLength == 0 {
		shelf.app.ServeHTTP(w, req)
		return
	}
	left := r.limit - shelf.uploaded(req, target)
	if req.ContentLength > left {
		r.dropUpload(req, target)
		writeError(w, http.StatusRequestEntityTooLarge, codeSizeInvalid, errTooLarge.Error())
		return
	}
	body := &limitedBody{ReadCloser: req.Body, left: left}
	req.Body = body
	answer := &limitedAnswer{ResponseWriter: w, body: body}
	shelf.app.ServeHTTP(answer, req)
	if body.exceeded {
		r.dropUpload(req, target)
	}
}

// uploaded tells how much of the upload is there. In a bucket, only distribution
// knows.
func (s *shelf) uploaded(req *http.Request, target route) int64 {
	if !s.files.parts {
		info, err := s.files.Stat(req.Context(), path.Join(uploadsPath(target.repository), target.upload, "data"))
		if err != nil {
			return 0 // unknown upload, or nothing yet
		}
		return info.Size()
	}
	status := req.Clone(req.Context())
	status.Method, status.Body, status.ContentLength = http.MethodGet, http.NoBody, 0
	answer := newRecorder()
	s.app.ServeHTTP(answer, status)
	_, end, _ := strings.Cut(answer.Header().Get("Range"), "-")
	last, err := strconv.ParseInt(end, 10, 64)
	if err != nil || last == 0 { // unknown upload, or "0-0": nothing, or one byte
		return 0
	}
	return last + 1
}

// dropUpload removes the bytes of an upload. Distribution's own way wants the
// state that the refused request would have given.
func (r *Registry) dropUpload(req *http.Request, target route) {
	if err := r.shelfOf(target.repository).files.discard(req.Context(), path.Join(uploadsPath(target.repository), target.upload)); err != nil {
		r.log.WarnContext(req.Context(), "refused upload not removed", "repository", target.repository, "err", err)
	}
}

// limitedBody fails once more than left bytes were read.
type limitedBody struct {
	io.ReadCloser
	left     int64
	exceeded bool
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.exceeded {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.exceeded = true
		return 0, errTooLarge
	}
	return n, err
}

// limitedAnswer replaces distribution's answer, an internal error, when the
// limit was the reason.
type limitedAnswer struct {
	http.ResponseWriter
	body     *limitedBody
	replaced bool
}

func (a *limitedAnswer) WriteHeader(status int) {
	if !a.body.exceeded {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	if !a.replaced {
		a.replaced = true
		a.Header().Set("Connection", "close") // the rest of the body is not wanted
		writeError(a.ResponseWriter, http.StatusRequestEntityTooLarge, codeSizeInvalid, errTooLarge.Error())
	}
}

func (a *limitedAnswer) Write(p []byte) (int, error) {
	if a.body.exceeded {
		a.WriteHeader(http.StatusRequestEntityTooLarge)
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}
