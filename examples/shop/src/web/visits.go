package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

const visitsCookie = "visits"

// visits counts the visits of each visitor in a cookie that only the shop can
// write: "N.SIGNATURE".
type visits struct {
	key []byte
}

// count is the number of this visit; the answer gets the cookie for the next.
func (v visits) count(w http.ResponseWriter, r *http.Request) int {
	n := 1
	if cookie, err := r.Cookie(visitsCookie); err == nil {
		n += v.read(cookie.Value)
	}
	text := strconv.Itoa(n)
	http.SetCookie(w, &http.Cookie{
		Name: visitsCookie, Value: text + "." + v.sign(text), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return n
}

// read is 0 for a cookie that the shop did not write.
func (v visits) read(value string) int {
	text, signature, _ := strings.Cut(value, ".")
	if !hmac.Equal([]byte(signature), []byte(v.sign(text))) {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

func (v visits) sign(text string) string {
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}
