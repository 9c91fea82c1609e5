// Package browser is how the dashboard's browser shows who it is: by a cookie, where
// programs send a token in a header. It decides at which addresses a browser can be
// logged in and how its cookie looks there, and which requests another site may have
// made a browser send. Sessions themselves are rows, which package access makes and
// looks up.
//
//	Authorization ─── there ──▶ a token, brt_…; the cookie does not count
//	      │
//	   not there
//	      ▼
//	   Cookie ──▶ from our own page? ──▶ a session, bws_…
package browser
