package wire

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Options say how to reach a provider. The zero Options take everything from the environment.
type Options struct {
	// BaseURL overrides the environment's. No key from the environment goes to it, unless KeyEnv names one or the key is known to be for its host.
	BaseURL string
	// KeyEnv names the environment variable with the key for BaseURL; without a BaseURL, for the provider's own host. That key does not go to an address from
	// the environment, which has its own key there.
	KeyEnv string
	// Key overrides the environment. It stays in memory.
	Key          string
	Organisation string
	Header       http.Header  // sent with each request
	HTTP         *http.Client // nil means a new one
	Limits       Limits
	clock        clock               // nil means the system's
	Getenv       func(string) string // nil means os.Getenv
	// OnRetry, if not nil, is called when a request failed and will be sent again after a wait.
	OnRetry func(failed *Error, wait time.Duration)
}

// Place is the default address of a provider, and the environment variables that change it.
type Place struct {
	Provider string
	Base     string
	BaseEnv  []string            // environment variables, of which the first that is set counts
	Reads    func(string) string // converts their value to an address; nil if it is one
	KeyEnv   []string
	OrgEnv   string
	KeyFree  bool // it needs no key, wherever it is
}

// known has the key variables of servers, by the end of their host name.
var known = []struct{ host, env string }{
	{"openai.com", "OPENAI_API_KEY"}, {"anthropic.com", "ANTHROPIC_API_KEY"}, {"googleapis.com", "GEMINI_API_KEY"},
	{"openrouter.ai", "OPENROUTER_API_KEY"}, {"deepseek.com", "DEEPSEEK_API_KEY"}, {"mistral.ai", "MISTRAL_API_KEY"},
	{"azure.com", "AZURE_OPENAI_API_KEY"}, {"groq.com", "GROQ_API_KEY"}, {"x.ai", "XAI_API_KEY"},
	{"together.xyz", "TOGETHER_API_KEY"}, {"fireworks.ai", "FIREWORKS_API_KEY"}, {"ollama.com", "OLLAMA_API_KEY"},
	{"moonshot.ai", "MOONSHOT_API_KEY"}, {"cerebras.ai", "CEREBRAS_API_KEY"},
}

// Sender returns a Sender for the provider's address, with the key that goes there. auth puts the key into the headers. The error is an *Error, of the kind
// Authentication if a required key is missing.
func (o Options) Sender(p Place, auth func(h http.Header, key string)) (*Sender, error) {
	env := o.Getenv
	if env == nil {
		env = os.Getenv
	}
	base, trusted, err := o.base(p, env)
	if err != nil {
		return nil, &Error{Kind: Invalid, Provider: p.Provider, Message: err.Error()}
	}
	key, name := o.key(p, base, trusted, env)
	if key == "" && !p.KeyFree && !loopback(base.Hostname()) && (trusted || keyFor(base) != "") {
		return nil, &Error{Kind: Authentication, Provider: p.Provider, KeyName: name, Message: "no key is set"}
	}
	s := &Sender{Provider: p.Provider, Base: strings.TrimRight(base.String(), "/"), Header: http.Header{}, Key: key, KeyName: name,
		limits: o.Limits.withDefaults(), client: o.HTTP, clock: o.clock, onRetry: o.OnRetry}
	s.Header.Set("User-Agent", "chatctx")
	if s.Organisation = o.Organisation; s.Organisation == "" && p.OrgEnv != "" && trusted {
		s.Organisation = env(p.OrgEnv)
	}
	if key != "" {
		auth(s.Header, key)
		if strings.HasSuffix(base.Hostname(), ".azure.com") {
			s.Header.Set("Api-Key", key)
		}
	}
	for n, v := range o.Header {
		s.Header[http.CanonicalHeaderKey(n)] = v
	}
	if key == "" && !trusted && o.KeyEnv == "" && keyFor(base) == "" {
		s.keyless = base.Host
	}
	if s.client == nil {
		s.client = newHTTP(s.limits)
	}
	if s.clock == nil {
		s.clock = systemClock{}
	}
	return s, nil
}

// base returns the address. trusted reports whether it is the provider's own or from the user's environment, and not from BaseURL.
func (o Options) base(p Place, env func(string) string) (u *url.URL, trusted bool, err error) {
	raw, trusted := p.Base, true
	for _, n := range p.BaseEnv {
		if v := strings.TrimSpace(env(n)); v != "" {
			if raw = v; p.Reads != nil {
				raw = p.Reads(v)
			}
			break
		}
	}
	if o.BaseURL != "" {
		raw, trusted = o.BaseURL, false
	}
	u, err = url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, false, errors.New("the base_url is not an address: it must begin with https:// or http://")
	}
	u.RawQuery, u.Fragment = "", ""
	return u, trusted, nil
}

// key returns the key for an address, and the name of its variable, even if that is not set. A key goes to the hosts of its owner, to the address that the
// environment sets beside it, and where KeyEnv sends it; to no other address.
func (o Options) key(p Place, base *url.URL, trusted bool, env func(string) string) (key, name string) {
	names, goes := p.KeyEnv, trusted
	if host := keyFor(base); o.KeyEnv != "" && (!trusted || p.owns(base)) {
		names, goes = []string{o.KeyEnv}, true
	} else if host != "" {
		goes = true
		if !slices.Contains(p.KeyEnv, host) {
			names = []string{host}
		}
	}
	if len(names) > 0 {
		name = names[0]
	}
	if o.Key != "" || !goes {
		return o.Key, name
	}
	for _, n := range names {
		if v := strings.TrimSpace(env(n)); v != "" {
			return v, n
		}
	}
	return "", name
}

// owns reports whether an address is the provider's own host.
func (p Place) owns(base *url.URL) bool {
	own, err := url.Parse(p.Base)
	return slices.Contains(p.KeyEnv, keyFor(base)) || err == nil && own.Scheme == base.Scheme && own.Host == base.Host
}

// KnownHost reports whether an address is a known provider's own, to which its key goes.
func KnownHost(u *url.URL) bool { return keyFor(u) != "" }

// keyFor returns the variable with the key of a known host; "" for any other host, and for an address without TLS, which would expose the key.
func keyFor(base *url.URL) string {
	for _, k := range known {
		if host := base.Hostname(); base.Scheme == "https" && (host == k.host || strings.HasSuffix(host, "."+k.host)) {
			return k.env
		}
	}
	return ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newHTTP returns a client that limits only connecting; the guard limits the rest. It follows no redirect, since the body and the key must go only where they
// were sent.
func newHTTP(l Limits) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	d := &net.Dialer{Timeout: max(l.Connect, 0)}
	t.DialContext = d.DialContext
	t.TLSHandshakeTimeout = max(l.Connect, 0)
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// host returns the address without secrets, for messages.
func (s *Sender) host() string {
	if u, err := url.Parse(s.Base); err == nil {
		return u.Host
	}
	return s.Provider
}

// unwrapURL removes the method and address that net/http adds to an error.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
