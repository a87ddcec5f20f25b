package serve

import (
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func tokenMethods() []*method {
	return []*method{
		define("tokens.list", "GET /tokens", Admin, "list the tokens, without their secrets", listTokens),
		define("tokens.add", "POST /tokens", Admin, "make a token; only this answer contains its secret", addToken),
		define("tokens.remove", "POST /tokens/{token}/remove", Admin, "remove a token", removeToken),
	}
}

// tokenInfo is a token. Only a new one has its secret.
type tokenInfo struct {
	Token   string     `json:"token"`
	Scopes  []string   `json:"scopes"`
	Created *time.Time `json:"created_at"`
	By      string     `json:"by,omitempty"` // its maker
	Secret  string     `json:"secret,omitempty"`
}

func listTokens(r *request, _ *struct{}) (list[tokenInfo], error) {
	all, err := r.store.Tokens(r.ctx)
	return listEach(all, err, func(t chatctx.Token) tokenInfo {
		return tokenInfo{Token: t.Name, Scopes: t.Scopes, Created: contract.Time(t.Created), By: t.By}
	})
}

type tokenParams struct {
	keyed
	Token  string   `json:"token" doc:"the token's name; what it changes is recorded under this name"`
	Scopes []string `json:"scopes" doc:"the scopes: read, write, decide, run, admin"`
}

func addToken(r *request, in *tokenParams) (tokenInfo, error) {
	if err := CheckScopes(in.Scopes); err != nil {
		return tokenInfo{}, err
	}
	secret, err := r.store.AddToken(r.ctx, in.Token, in.Scopes)
	return tokenInfo{Token: in.Token, Scopes: in.Scopes, Secret: secret}, err
}

// CheckScopes returns an error if a word is not a scope, or there are none.
func CheckScopes(words []string) error {
	for _, w := range words {
		if !slices.Contains(Scopes, Scope(w)) {
			return chatctx.Invalid("no scope %q: there are read, write, decide, run and admin", w)
		}
	}
	if len(words) == 0 {
		return chatctx.Invalid("a token needs a scope: read, write, decide, run or admin")
	}
	return nil
}

type tokenRef struct {
	keyed
	Token string `json:"token" doc:"the token's name"`
}

func removeToken(r *request, in *tokenRef) (struct{}, error) {
	err := r.store.RemoveToken(r.ctx, in.Token)
	r.server.dismiss(r.ctx)
	return struct{}{}, err
}
