package operation

import (
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Other programs", Of: tokenOperations}) }

func tokenOperations() []*Operation {
	return []*Operation{
		Define("tokens.list", "GET /tokens", Admin, "list the tokens, without their secrets", listTokens),
		Define("tokens.add", "POST /tokens", Admin, "make a token; only this answer contains its secret", addToken),
		Define("tokens.remove", "POST /tokens/{token}/remove", Admin, "remove a token", removeToken),
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

func listTokens(r *Request, _ *struct{}) (List[tokenInfo], error) {
	all, err := r.Store.Tokens(r.Ctx)
	return ListEach(all, err, func(t chatctx.Token) tokenInfo {
		return tokenInfo{Token: t.Name, Scopes: t.Scopes, Created: contract.Time(t.Created), By: t.By}
	})
}

type tokenParams struct {
	Keyed
	Token  string   `json:"token" doc:"the token's name; what it changes is recorded under this name"`
	Scopes []string `json:"scopes" doc:"the scopes: read, write, decide, run, admin"`
}

func addToken(r *Request, in *tokenParams) (tokenInfo, error) {
	if err := CheckRights(in.Scopes); err != nil {
		return tokenInfo{}, err
	}
	secret, err := r.Store.AddToken(r.Ctx, in.Token, in.Scopes)
	return tokenInfo{Token: in.Token, Scopes: in.Scopes, Secret: secret}, err
}

// CheckRights returns an error if a word is not a right, or there are none.
func CheckRights(words []string) error {
	for _, w := range words {
		if !slices.Contains(Rights, Right(w)) {
			return chatctx.Invalid("no scope %q: there are read, write, decide, run and admin", w)
		}
	}
	if len(words) == 0 {
		return chatctx.Invalid("a token needs a scope: read, write, decide, run or admin")
	}
	return nil
}

type tokenRef struct {
	Keyed
	Token string `json:"token" doc:"the token's name"`
}

func removeToken(r *Request, in *tokenRef) (struct{}, error) {
	err := r.Store.RemoveToken(r.Ctx, in.Token)
	r.Dismiss()
	return struct{}{}, err
}
