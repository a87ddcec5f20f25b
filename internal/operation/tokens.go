package operation

import (
	"slices"
	"time"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/grant"
)

func init() { Register(Group{Heading: "Other programs", Of: tokenOperations}) }

func tokenOperations() []*Operation {
	return []*Operation{
		Define("tokens.list", "GET /tokens", Admin, "list the tokens", listTokens).As("serve token ls", "chatctx serve token ls"),
		Define("tokens.add", "POST /tokens", Admin, "make a token; only this answer contains its secret", addToken).As("serve token add", "chatctx serve token add phone --scope read,decide").
			With("The store keeps a hash of it, and no export has that. Decisions that are taken with it bear its name."),
		Define("tokens.remove", "POST /tokens/{token}/remove", Admin, "remove a token", removeToken).As("serve token rm", "chatctx serve token rm phone"),
	}
}

// Token is a token. Only a new one has its secret.
type Token struct {
	Token   string     `json:"token"`
	Scopes  []string   `json:"scopes"`
	Created *time.Time `json:"created_at,omitempty"`
	By      string     `json:"by,omitempty"` // its maker
	Secret  string     `json:"secret,omitempty"`
}

func listTokens(r *Request, _ *struct{}) (List[Token], error) {
	all, err := grant.List(r.Ctx, base.Of(r.Store))
	return ListEach(all, err, func(t base.Token) Token {
		return Token{Token: t.Name, Scopes: t.Scopes, Created: contract.Time(t.Created), By: t.By}
	})
}

// NewToken is a token to make. The command line has the scopes in one word.
type NewToken struct {
	Keyed
	Token  string   `json:"token" arg:"NAME" doc:"the token's name; what it changes is recorded under this name"`
	Scopes []string `json:"scopes" doc:"the scopes: read, write, decide, run, admin"`
	Scope  string   `json:"-" flag:"scope" default:"read" doc:"what it allows, {SCOPES} separated by commas: read, write (conversations), decide (calls), run (models and tools), admin (rules, tools, tokens, settings)"`
}

func addToken(r *Request, in *NewToken) (Token, error) {
	if err := CheckRights(in.Scopes); err != nil {
		return Token{}, err
	}
	secret, err := grant.Add(r.Ctx, base.Of(r.Store), in.Token, in.Scopes)
	return Token{Token: in.Token, Scopes: in.Scopes, Secret: secret}, err
}

// CheckRights returns an error if a word is not a right, or there are none.
func CheckRights(words []string) error {
	for _, w := range words {
		if !slices.Contains(Rights, Right(w)) {
			return base.Invalid("no scope %q: there are read, write, decide, run and admin", w)
		}
	}
	if len(words) == 0 {
		return base.Invalid("a token needs a scope: read, write, decide, run or admin")
	}
	return nil
}

// OldToken names a token.
type OldToken struct {
	Keyed
	Token string `json:"token" arg:"NAME" doc:"the token's name"`
}

func removeToken(r *Request, in *OldToken) (Removed, error) {
	err := grant.Remove(r.Ctx, base.Of(r.Store), in.Token)
	if r.Dismiss != nil {
		r.Dismiss()
	}
	return Removed{in.Token}, err
}

// Removed is a token that is gone.
type Removed struct {
	Token string `json:"token"`
}
