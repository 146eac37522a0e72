package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// route is what a request asks for, judged by its method and target alone.
type route int

const (
	routeNone route = iota
	routeMalformed
	routeHealth
	routeAuth
	routeRead
	routeWrite
)

// find returns the route of a request and, for a read, the text of the id. It
// judges the target as it was sent: no part of it is decoded or cleaned first, so
// that one event has one address.
func find(r *http.Request) (route, string) {
	target := r.RequestURI
	if r.URL.Scheme != "" {
		target = r.URL.RequestURI() // sent in absolute form
	}
	path, _, _ := strings.Cut(target, "?")
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case get && path == "/auth":
		return routeAuth, ""
	case get && strings.HasPrefix(path, "/events/") && isCanonical(path[len("/events/"):]):
		return routeRead, path[len("/events/"):]
	case r.Method == http.MethodPost && path == "/events":
		return routeWrite, ""
	case get && path == "/healthz":
		return routeHealth, ""
	case isMalformed(r.Method, path):
		return routeMalformed, ""
	case get && strings.HasPrefix(path, "/events/"):
		return routeRead, path[len("/events/"):]
	}
	return routeNone, ""
}

// isCanonical reports whether a text is a positive decimal number as a machine
// writes it: ASCII digits without sign, leading zero or percent-escape.
func isCanonical(s string) bool {
	if s == "" || s[0] == '0' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// eventID reads an id; anything but a canonical number up to 2^63-1 is none.
func eventID(s string) (int64, bool) {
	if !isCanonical(s) {
		return 0, false
	}
	id, err := strconv.ParseInt(s, 10, 64)
	return id, err == nil
}

// isMalformed finds the requests that nginx refuses although net/http lets them
// pass: a method with other characters than A-Z, '-' and '_', a target that does
// not begin with a slash, an escaped NUL, and a path that climbs above the root.
func isMalformed(method, path string) bool {
	for _, c := range method {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return true
		}
	}
	if path == "" || path[0] != '/' {
		return true
	}
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.ContainsRune(decoded, 0) {
		return true
	}
	depth := 0
	for _, segment := range strings.Split(decoded, "/") {
		switch segment {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}
