package view

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// MaxCandidates bounds the list in the error for an ambiguous reference.
const MaxCandidates = 20

// CurrentContext returns the current context of whoever uses the store, the zero id if there is none.
func CurrentContext(s *base.Store, tx kv.Tx) (pool.ID, error) {
	if s.Place != nil {
		return s.Place.Context()
	}
	return StoresContext(tx)
}

// StoresContext returns the current context that the store itself keeps, the zero id if there is none.
func StoresContext(tx kv.Tx) (pool.ID, error) {
	raw, err := tx.Get(base.MetaBucket, base.MetaCurrent)
	if err != nil || len(raw) != 16 {
		return pool.ID{}, err
	}
	return pool.ID(raw), nil
}

// ResolveContext finds a context: the current one for "", else by its whole id, its title, or a part of its id or title. Of contexts whose titles fit
// equally well, those outside the trash take precedence.
func ResolveContext(s *base.Store, tx kv.Tx, ref string) (pool.ID, error) {
	return ResolveContextIn(s, tx, ref, false)
}

// ResolveContextIn is like ResolveContext, but with trash those in the trash take precedence.
func ResolveContextIn(s *base.Store, tx kv.Tx, ref string, trash bool) (pool.ID, error) {
	if ref == "" {
		id, err := CurrentContext(s, tx)
		if err == nil && id == (pool.ID{}) {
			err = base.ErrNoCurrent
		}
		return id, err
	}
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		raw, err := tx.Get(base.ContextBucket, id[:])
		if err == nil && raw == nil {
			err = base.NotFound("conversation", ref)
		}
		return id, err
	}
	found, err := contextsLike(tx, ref, trash)
	if err != nil {
		return pool.ID{}, err
	}
	switch len(found) {
	case 0:
		return pool.ID{}, base.NotFound("conversation", ref)
	case 1:
		return found[0].id, nil
	}
	words := make([]string, 0, MaxCandidates)
	for _, c := range found[:min(len(found), MaxCandidates)] {
		word, err := c.describe(tx)
		if err != nil {
			return pool.ID{}, err
		}
		words = append(words, word)
	}
	return pool.ID{}, base.Ambiguous("conversation", ref, words, len(found)-len(words))
}

// contextsLike returns the contexts that a reference may mean. trash selects the contexts in the trash or those outside. The first list that is not empty
// counts: the selected ones with that title; the others with that title; those with a matching part of the id and the selected ones with a part of the
// title, ignoring case; the others with a part of the title.
func contextsLike(tx kv.Tx, ref string, trash bool) ([]candidate, error) {
	var titled, titledElse, like, likeElse []candidate
	digits, part := IdDigits(ref), strings.ToLower(strings.TrimSpace(ref))
	err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
		id := pool.ID(key)
		rec, err := base.DecodeContext(id, value)
		if err != nil {
			return err
		}
		c, here := candidate{id, rec}, (rec.Trashed != 0) == trash
		switch {
		case rec.Title == ref && here:
			titled = append(titled, c)
		case rec.Title == ref:
			titledElse = append(titledElse, c)
		case digits != "" && Matches(id, digits), part != "" && here && strings.Contains(strings.ToLower(rec.Title), part):
			like = append(like, c)
		case part != "" && strings.Contains(strings.ToLower(rec.Title), part):
			likeElse = append(likeElse, c)
		}
		return nil
	})
	for _, found := range [][]candidate{titled, titledElse, like, likeElse} {
		if len(found) > 0 {
			return found, err
		}
	}
	return nil, err
}

// candidate is a context that a reference may mean.
type candidate struct {
	id  pool.ID
	rec *base.ContextRecord
}

// describe distinguishes a context from others by its id, title, last change, size and first words.
func (c candidate) describe(tx kv.Tx) (string, error) {
	words := []string{c.rec.Title}
	if c.rec.Trashed != 0 {
		words = append(words, "in the trash")
	}
	words = append(words, c.rec.Updated.Time().Format(time.DateOnly), plural.Count(int(c.rec.Messages), "message"))
	b, err := branchstore.Get(tx, c.id, c.rec.Active)
	if b == nil || err != nil {
		return fmt.Sprintf("%s (%s)", c.id, strings.Join(words, ", ")), err
	}
	first, err := firstWords(tx, c.id, b)
	if first != "" && first != c.rec.Title {
		words = append(words, first)
	}
	return fmt.Sprintf("%s (%s)", c.id, strings.Join(words, ", ")), err
}

// DescribeName distinguishes a branch from others by its name, its date, its length and its last words.
func DescribeName(tx kv.Tx, ctx pool.ID, b *branch.Branch) (string, error) {
	words := []string{b.Created.Time().Format(time.DateOnly), plural.Count(branchstore.Len(b), "message")}
	head, err := branchstore.Head(tx, ctx, b.Pieces)
	if err != nil {
		return "", err
	}
	if m, err := poolstore.Get(tx, ctx, head); err == nil && m != nil {
		words = append(words, TitleFrom(m.Text()))
	}
	return fmt.Sprintf("%s (%s)", b.Name, strings.Join(words, ", ")), nil
}

// firstWords returns the first line of a branch's first message.
func firstWords(tx kv.Tx, ctx pool.ID, b *branch.Branch) (string, error) {
	if branchstore.Len(b) == 0 {
		return "", nil
	}
	id, err := branchstore.IDAt(tx, ctx, b.Pieces, 0)
	if err != nil {
		return "", err
	}
	m, err := poolstore.Get(tx, ctx, id)
	if m == nil || err != nil {
		return "", err
	}
	return TitleFrom(m.Text()), nil
}

// IdDigits returns the hex digits of a reference that may be a part of an id, else "".
func IdDigits(ref string) string {
	digits := strings.ToLower(strings.ReplaceAll(ref, "-", ""))
	if len(digits) < 4 || len(digits) > 32 {
		return ""
	}
	for _, r := range digits {
		if !strings.ContainsRune("0123456789abcdef", r) {
			return ""
		}
	}
	return digits
}

// Matches reports whether digits are the beginning or end of an id, or the beginning of its short form.
func Matches(id pool.ID, digits string) bool {
	var buf [32]byte
	hex.Encode(buf[:], id[:])
	all := string(buf[:])
	return strings.HasPrefix(all, digits) || strings.HasSuffix(all, digits) || strings.HasPrefix(all[32-shownDigits:], digits)
}

// shownDigits is the length of an id's short form, record.Short.
const shownDigits = 8

// TitleFrom makes a title from the first line of a text: at most 60 characters, without control characters. It may be "".
func TitleFrom(text string) string {
	line := strings.TrimSpace(text)
	if i := strings.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	}
	line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(line) <= 60 {
		return line
	}
	runes := []rune(line)[:59]
	return strings.TrimRightFunc(string(runes), unicode.IsSpace) + "…"
}
