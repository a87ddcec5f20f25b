package engine

import (
	"net/url"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Shown returns a URL without its passwords, to be shown to others.
func Shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return kv.Scheme(text) + "://…"
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), "***")
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		for _, key := range []string{"password", "sslpassword"} {
			if q.Has(key) {
				q.Set(key, "***")
			}
		}
		u.RawQuery = q.Encode()
	}
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***")
}
