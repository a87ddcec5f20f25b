package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of an error, which a program can act on.
type Kind string

// The kinds of errors.
const (
	Authentication Kind = "authentication" // no key, a wrong one, or one without permission
	RateLimit      Kind = "rate_limit"     // too much in too short a time; RetryAfter says how long to wait
	TooLong        Kind = "too_long"       // more tokens, or bytes, than the model or the provider accepts
	Refused        Kind = "refused"        // the provider will not answer this: its policy, or no credit left
	Overloaded     Kind = "overloaded"     // the provider has no capacity, or failed itself
	Network        Kind = "network"        // the provider was not reached, or did not answer in time
	Invalid        Kind = "invalid"        // the provider does not accept the request
	Incomplete     Kind = "incomplete"     // the reply broke off before its end
)

// ErrIncomplete is what errors.Is finds in the error of a reply that broke off, whatever the cause.
var ErrIncomplete = errors.New("the reply broke off before its end")

// ErrNoCount means that this provider does not count tokens.
var ErrNoCount = errors.New("this provider cannot count tokens")

// Error is what a provider, or the way to it, answered instead of a reply. It never contains a key.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int           // of HTTP; 0 without an answer. An error inside a stream has 200
	Type       string        // the provider's own word for it, "" if it gave none
	Message    string        // the provider's own text, or ours
	RequestID  string        // to quote to the provider
	RetryAfter time.Duration // how long to wait; 0 if unknown
	KeyName    string        // the environment variable that the key is, or would be, read from
	Keyless    string        // the host of a request without a key, "" if there was a key
	Nothing    bool          // of a reply that broke off: nothing of it had arrived
	Err        error         // the cause, if it is not the provider's: a context's, the network's
}

// Error says what went wrong and what to do.
func (e *Error) Error() string { return e.text() + "; " + e.Advice() }

// text says what went wrong.
func (e *Error) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Provider, strings.ReplaceAll(string(e.Kind), "_", " "))
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", strings.TrimRight(e.Message, " .\n"))
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	return b.String()
}

// Advice returns what a person can do about it.
func (e *Error) Advice() string {
	switch e.Kind {
	case Authentication:
		if e.Keyless != "" {
			return e.Keyless + " wants a key, and got none: the setting key_env=" + cmp.Or(e.KeyName, "NAME") + " sends it there"
		}
		if e.KeyName != "" {
			return "check the key in " + e.KeyName
		}
		return "check the key"
	case RateLimit:
		if e.RetryAfter > 0 {
			return "try again in " + e.RetryAfter.Round(time.Second).String()
		}
		return "try again in a minute"
	case TooLong:
		return "compact the branch, or choose a model with a larger window"
	case Refused:
		return "change the last message, the model or the account: the same request will be refused again"
	case Overloaded:
		return "try again later, or choose another model"
	case Network:
		return "check the connection and the base_url"
	case Incomplete:
		if e.Nothing {
			return "nothing had come; ask again"
		}
		return "what came of the answer is unfinished; ask again for a whole one"
	}
	return "the request, or a setting in it, has to change"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is ErrIncomplete and the reply broke off.
func (e *Error) Is(target error) bool { return target == ErrIncomplete && e.Kind == Incomplete }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	return e.Kind == RateLimit || e.Kind == Overloaded || e.Kind == Network
}

// report is the error body of all providers, as far as they agree: an object or a text under "error", or the same members at the top.
type report struct {
	Error   json.RawMessage   `json:"error"`
	Errors  []json.RawMessage `json:"errors"`
	Type    string            `json:"type"`
	Code    json.RawMessage   `json:"code"` // a text at OpenAI, a number at Gemini
	Status  string            `json:"status"`
	Message string            `json:"message"`
	Detail  json.RawMessage   `json:"detail"`
	Details []struct {
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
	RequestID string `json:"request_id"`
}

// Classify returns the error for an error body and its HTTP status (200 inside a stream). The body counts more than the status. A body that is not JSON is
// quoted.
func Classify(provider string, status int, h http.Header, body []byte) *Error {
	e := &Error{Provider: provider, Status: status, RetryAfter: retryAfter(h), RequestID: requestID(h)}
	words := e.read(body)
	if e.Message == "" {
		e.Message = plain(status, body)
	}
	e.Kind = kindOf(words, strings.ToLower(e.Message), status)
	return e
}

// requestID returns the provider's name for a request.
func requestID(h http.Header) string {
	for _, name := range []string{"request-id", "x-request-id", "x-goog-request-id"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// Reports reports whether an event is an error that a server sent instead of a reply: by its name, or because it, or the first element of its list, has an
// error's members. Call it for events without any of a reply's members.
func Reports(e Event) bool {
	var top report
	if Decode(firstOf(e.Data), &top) != nil {
		return e.Name == "error"
	}
	var object struct{ Object string }
	_ = Decode(firstOf(e.Data), &object)
	return e.Name == "error" || object.Object == "error" || len(top.Errors) > 0 || top.Message != "" || there(top.Error) || there(top.Detail)
}

func there(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// firstOf returns the first element of a list, since Gemini's streams and some servers' errors are lists; else the body.
func firstOf(body []byte) []byte {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if len(body) > 0 && body[0] == '[' && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return body
}

// read sets the fields of e from the body and returns the provider's words for the kind.
func (e *Error) read(body []byte) []string {
	var top, r report
	if Decode(firstOf(body), &top) != nil {
		return nil
	}
	if !there(top.Error) && len(top.Errors) > 0 {
		top.Error = top.Errors[0]
	}
	r = top
	if len(top.Error) > 0 && Decode(top.Error, &e.Message) == nil && e.Message == "" {
		r = report{}
		_ = Decode(top.Error, &r)
	}
	e.Message = cmp.Or(e.Message, r.Message)
	if e.Message == "" && len(r.Detail) > 0 && Decode(r.Detail, &e.Message) == nil && e.Message == "" {
		e.Message = string(r.Detail)
	}
	if top.RequestID != "" {
		e.RequestID = top.RequestID
	}
	var code string
	_ = Decode(r.Code, &code)
	words := []string{code, r.Status, r.Type}
	if code == "" && len(r.Code) > 0 {
		words = append(words, string(r.Code)) // a number
	}
	for _, d := range r.Details {
		words = append([]string{d.Reason}, words...)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			e.RetryAfter = wait
		}
	}
	for _, w := range words {
		e.Type = cmp.Or(e.Type, w)
	}
	return words
}

// plain returns a text for an answer that is not an error body: a proxy's page, or nothing.
func plain(status int, body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if text == "" || strings.HasPrefix(text, "<") {
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// kinds are the providers' words. Specific ones (codes) are looked up before general ones (types).
var kinds = map[string]Kind{
	"authentication_error": Authentication, "permission_error": Authentication, "invalid_api_key": Authentication,
	"unauthenticated": Authentication, "permission_denied": Authentication, "api_key_invalid": Authentication,
	"account_deactivated": Authentication,

	"rate_limit_error": RateLimit, "rate_limit_exceeded": RateLimit, "resource_exhausted": RateLimit, "requests": RateLimit,
	"tokens": RateLimit, "too_many_requests": RateLimit,

	"request_too_large": TooLong, "context_length_exceeded": TooLong, "string_above_max_length": TooLong,
	"exceed_context_size_error": TooLong,

	"billing_error": Refused, "insufficient_quota": Refused, "content_filter": Refused, "content_policy_violation": Refused, "image_content_policy_violation": Refused,
	"billing_hard_limit_reached": Refused, "billing_not_active": Refused, "cyber_policy_violation": Refused,

	"overloaded_error": Overloaded, "api_error": Overloaded, "server_error": Overloaded, "timeout_error": Overloaded,
	"unavailable": Overloaded, "internal": Overloaded, "deadline_exceeded": Overloaded, "slow_down": Overloaded,
	"server_is_overloaded": Overloaded, "internal_server_error": Overloaded,

	"not_found_error": Invalid, "model_not_found": Invalid, "not_found": Invalid,
}

// texts distinguish errors that providers put under one general word, such as invalid_request_error.
var texts = []struct {
	part string
	kind Kind
}{
	{"prompt is too long", TooLong}, {"maximum context length", TooLong}, {"context window", TooLong},
	{"exceeds the maximum number of tokens", TooLong}, {"exceed context limit", TooLong}, {"context size", TooLong},
	{"input is too long", TooLong}, {"input token count", TooLong}, {"request exceeds the maximum size", TooLong},
	{"credit balance is too low", Refused}, {"exceeded your current quota, please check your plan", Refused},
	{"content management policy", Refused}, {"flagged", Refused},
	{"context length", TooLong}, // Ollama's errors are only a text
	{"api key not valid", Authentication}, {"invalid api key", Authentication}, {"incorrect api key", Authentication},
}

func kindOf(words []string, text string, status int) Kind {
	for _, t := range texts {
		// Gemini says the same about its limits per minute as OpenAI about an empty account.
		if strings.Contains(text, t.part) && !(t.kind == Refused && slices.Contains(words, "RESOURCE_EXHAUSTED")) {
			return t.kind
		}
	}
	for _, w := range words {
		if k, ok := kinds[strings.ToLower(w)]; ok {
			return k
		}
	}
	if status == http.StatusOK {
		return kindUnder200(words, text)
	}
	return kindOfStatus(status)
}

// faults are the beginnings of words for requests that are wrong.
var faults = []string{"invalid", "unsupported", "unknown", "bad_request", "badrequest", "failed_precondition", "out_of_range", "image_", "empty_image", "failed_to_download"}

// kindUnder200 returns the kind of an error in place of a reply: by a number that stands for a status, else by a word for a fault, else by the text, which is
// all that Ollama sends. An unknown error may pass, so it is Overloaded.
func kindUnder200(words []string, text string) Kind {
	for _, w := range words {
		if n, err := strconv.Atoi(w); err == nil && n >= 400 && n < 600 {
			return kindOfStatus(n)
		}
	}
	for _, w := range words {
		for _, f := range faults {
			if strings.HasPrefix(strings.ToLower(w), f) {
				return Invalid
			}
		}
	}
	switch {
	case strings.Contains(text, "unauthorized"):
		return Authentication
	case strings.Contains(text, "does not support"), strings.Contains(text, "not found"):
		return Invalid
	}
	return Overloaded
}

func kindOfStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Authentication
	case status == http.StatusPaymentRequired:
		return Refused
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status == http.StatusRequestEntityTooLarge:
		return TooLong
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500 || status == http.StatusOK:
		return Overloaded
	}
	return Invalid
}

// retryAfter returns how long an answer asks to wait, 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("retry-after")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		from := time.Now()
		if sent, err := http.ParseTime(h.Get("date")); err == nil {
			from = sent // by the server's clock, since ours may be wrong
		}
		return max(at.Sub(from), 0)
	}
	return 0
}

// keyLike matches keys of the known providers, which providers quote in errors.
var keyLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(sk-|AIza|gsk_|xai-|pplx-)[A-Za-z0-9_*\-]{6,}`) })

// without removes the key, and whatever looks like one, from all that a server said: it may repeat a key anywhere.
func (e *Error) without(key string) *Error {
	for _, text := range []*string{&e.Message, &e.RequestID, &e.Type} {
		*text = redact(*text, key)
	}
	return e
}

// redact removes the key, and whatever looks like one, from a text.
func redact(text, key string) string {
	if len(key) >= 4 {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	return keyLike().ReplaceAllString(text, "[key]")
}
