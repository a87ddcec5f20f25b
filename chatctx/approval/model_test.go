package approval

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The model is a slow and obvious reading of what rules promise. It shares nothing with the code that it is held against: it reads arguments with encoding/json, finds twins and duplicates by comparing all pairs of keys,
// matches globs by trying everything, and counts with big.Rat.

// mPair is a member of an object as it was generated, so that nothing is lost by reading.
type mPair struct {
	key   string
	value any // string, mNum, bool, nil, []any, []mPair
}

type mNum string

// mText is the JSON of a generated value.
func mText(v any) string {
	switch v := v.(type) {
	case mNum:
		return string(v)
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, mText(one))
		}
		return "[" + strings.Join(parts, " ,") + "]"
	case []mPair:
		var parts []string
		for _, p := range v {
			key, _ := json.Marshal(p.key)
			parts = append(parts, string(key)+": "+mText(p.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

// mKeys says whether keys stand twice, or are one but for case, anywhere.
func mKeys(v any) (twice, twins bool) {
	var inner []any
	switch v := v.(type) {
	case []any:
		inner = v
	case []mPair:
		for i, a := range v {
			inner = append(inner, a.value)
			for _, b := range v[i+1:] {
				twice = twice || a.key == b.key
				twins = twins || strings.EqualFold(a.key, b.key)
			}
		}
	}
	for _, one := range inner {
		a, b := mKeys(one)
		twice, twins = twice || a, twins || b
	}
	return twice, twins
}

// mFind gives the values at a name, exactly or but for case; each element of lists on the way counts for the latter.
func mFind(v any, path []string, loose bool) []any {
	if len(path) == 0 {
		return []any{v}
	}
	var out []any
	switch v := v.(type) {
	case []mPair:
		for _, p := range v {
			if path[0] != "*" && (p.key == path[0] || loose && strings.EqualFold(p.key, path[0])) {
				out = append(out, mFind(p.value, path[1:], loose)...)
			}
		}
		if path[0] == "*" && loose {
			out = mFind(any(v), path[1:], loose)
		}
	case []any:
		for _, one := range v {
			switch {
			case path[0] == "*":
				out = append(out, mFind(one, path[1:], loose)...)
			case loose:
				out = append(out, mFind(one, path, loose)...)
			}
		}
	default:
		if path[0] == "*" && loose {
			return mFind(v, path[1:], loose)
		}
	}
	return out
}

// mBelow gives a value and all that lies in it.
func mBelow(v any) []any {
	out := []any{v}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			out = append(out, mBelow(one)...)
		}
	case []mPair:
		for _, p := range v {
			out = append(out, mBelow(p.value)...)
		}
	}
	return out
}

func mWord(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case mNum:
		return string(v), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

// mGlob tries everything: * takes in any characters, within a name where path is set.
func mGlob(pattern, s string, path bool) bool {
	if pattern == "" {
		return s == ""
	}
	if path && strings.HasPrefix(pattern, "**/") && (mGlob(pattern[3:], s, path) || strings.Contains(s, "/") && mGlob(pattern, s[strings.Index(s, "/")+1:], path)) {
		return true
	}
	if path && pattern == "/**" && (s == "" || s[0] == '/') {
		return true
	}
	if path && pattern == "**" {
		return true
	}
	switch pattern[0] {
	case '*':
		for i := 0; i <= len(s); i++ {
			if mGlob(pattern[1:], s[i:], path) {
				return true
			}
			if i < len(s) && path && s[i] == '/' {
				return false
			}
		}
		return false
	case '?':
		return s != "" && (!path || s[0] != '/') && mGlob(pattern[1:], s[1:], path)
	}
	return s != "" && s[0] == pattern[0] && mGlob(pattern[1:], s[1:], path)
}

// mNumber reads a number; told is false where it is beyond what can be told.
func mNumber(s string) (n *big.Rat, is, told bool) {
	var number json.Number
	if json.Unmarshal([]byte(s), &number) != nil || string(number) != s || s == "" || s[0] == '"' {
		return nil, false, false
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		e, ok := new(big.Int).SetString(strings.TrimPrefix(s[at+1:], "+"), 10)
		if !ok || e.CmpAbs(big.NewInt(400)) > 0 {
			return nil, true, false
		}
	}
	n, ok := new(big.Rat).SetString(s)
	return n, ok, ok
}

// mCond is a generated condition.
type mCond struct {
	path       []string
	op, value  string
	lo, hi     string // of range
	toolNeedle bool
}

func (c mCond) condition() record.Condition {
	if c.toolNeedle {
		return record.Condition{Op: Tool, Value: c.value}
	}
	name := ""
	for i, p := range c.path {
		switch {
		case p == "*":
			name += "[*]"
		case i > 0:
			name += "." + mQuoted(p)
		default:
			name += mQuoted(p)
		}
	}
	return record.Condition{Argument: name, Op: c.op, Value: c.value}
}

func mQuoted(s string) string {
	if s == "tool" || strings.ContainsAny(s, ". ") {
		raw, _ := json.Marshal(s)
		return string(raw)
	}
	return s
}

// one says what a condition says of one value: 0 no, 1 it cannot be told, 2 yes.
func (c mCond) one(v any, loose bool) int {
	word, isWord := mWord(v)
	if n, isNumber := v.(mNum); c.op == Range {
		switch v.(type) {
		case []any, []mPair:
			return 0
		}
		got, _, told := mNumber(string(n))
		if !isNumber || !told {
			return 1
		}
		lo, _, _ := mNumber(c.lo)
		hi, _, _ := mNumber(c.hi)
		return yesOr(got.Cmp(lo) >= 0 && got.Cmp(hi) <= 0, 0)
	}
	if c.op == Equals {
		return c.equals(v, word, isWord, loose)
	}
	if v == nil {
		return 1
	}
	if !isWord {
		return 0
	}
	pattern := c.value
	up := strings.Contains(word, "..")
	if loose {
		word, pattern = strings.ToLower(word), strings.ToLower(pattern)
	}
	if c.op == Prefix {
		return yesOr(strings.HasPrefix(word, pattern) && (loose || !up), 0)
	}
	text, path := mGlob(pattern, word, false), mGlob(pattern, word, true)
	if loose {
		return yesOr(text || path, 0)
	}
	return yesOr(text && path && !up, 0)
}

func yesOr(ok bool, otherwise int) int {
	if ok {
		return 2
	}
	return otherwise
}

// equals: the values of conditions are numbers, quoted texts and plain texts here.
func (c mCond) equals(v any, word string, isWord, loose bool) int {
	n, isNumber := v.(mNum)
	text, isText := v.(string)
	want, valueIsNumber, told := mNumber(c.value)
	best := 0
	if isNumber && valueIsNumber {
		got, _, gotTold := mNumber(string(n))
		if !told || !gotTold {
			return 1
		}
		return yesOr(got.Cmp(want) == 0, 0)
	}
	quoted := ""
	if strings.HasPrefix(c.value, `"`) && json.Unmarshal([]byte(c.value), &quoted) == nil {
		best = yesOr(isText && (text == quoted || loose && strings.EqualFold(text, quoted)), 0)
	} else if isText && !valueIsNumber {
		best = yesOr(text == c.value || loose && strings.EqualFold(text, c.value), 0)
	}
	if !loose || !isWord || best == 2 {
		return best
	}
	if !isNumber && strings.EqualFold(word, c.value) {
		return 2
	}
	other := c.value
	if quoted != "" {
		other = quoted
	}
	got, isNum, gotTold := mNumber(word)
	want, wantNum, wantTold := mNumber(other)
	switch {
	case !isNum || !wantNum:
		return best
	case !gotTold || !wantTold:
		return max(best, 1)
	}
	return yesOr(got.Cmp(want) == 0, best)
}

// surely and possibly are the two strengths.
func (c mCond) surely(tool string, args any, broken, twins bool) bool {
	if c.toolNeedle {
		return mGlob(c.value, tool, false)
	}
	if broken || twins || !mWhole(args, c.path) {
		return false
	}
	found := mFind(args, c.path, false)
	for _, v := range found {
		if c.one(v, false) != 2 {
			return false
		}
	}
	return len(found) > 0
}

// mWhole reports whether a path leads to a value through each element on the way.
func mWhole(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if path[0] != "*" {
		found := mFind(v, path[:1], false)
		return len(found) == 1 && mWhole(found[0], path[1:])
	}
	list, ok := v.([]any)
	for _, one := range list {
		ok = ok && mWhole(one, path[1:])
	}
	return ok && len(list) > 0
}

func (c mCond) possibly(tool string, args any, broken bool) int {
	if c.toolNeedle {
		return yesOr(mGlob(strings.ToLower(c.value), strings.ToLower(tool), false), 0)
	}
	if broken {
		return 1
	}
	best := 0
	for _, v := range mFind(args, c.path, true) {
		for _, one := range mBelow(v) {
			best = max(best, c.one(one, true))
		}
	}
	return best
}

// mRule is a generated rule.
type mRule struct {
	effect, tool string
	when, unless []mCond
}

// mJudge decides by the promises.
func mJudge(rules []mRule, fallback, tool string, args any, declared map[string]bool) string {
	twice, twins := mKeys(args)
	_, isObject := args.([]mPair)
	broken := twice || !isObject
	denies, asks, allows, untold := false, false, false, false
	for _, r := range rules {
		if r.effect == record.Allow {
			ok := mGlob(r.tool, tool, false) && !broken && !twins
			for _, p := range pairsOf(args) {
				ok = ok && (declared == nil || declared[p.key])
			}
			for _, c := range r.when {
				ok = ok && c.surely(tool, args, broken, twins)
			}
			for _, c := range r.unless {
				ok = ok && c.possibly(tool, args, broken) == 0
			}
			allows = allows || ok
			continue
		}
		strength := yesOr(mGlob(strings.ToLower(r.tool), strings.ToLower(tool), false), 0)
		for _, c := range r.when {
			strength = min(strength, c.possibly(tool, args, broken))
		}
		for _, c := range r.unless {
			if c.surely(tool, args, broken, twins) {
				strength = 0
			}
		}
		switch {
		case strength == 0:
		case r.effect == record.Ask:
			asks = true
		case strength == 2:
			denies = true
		default:
			untold = true
		}
	}
	switch {
	case denies, untold && fallback == record.Deny:
		return record.Deny
	case untold, asks:
		return record.Ask
	case allows:
		return record.Allow
	}
	return fallback
}

func pairsOf(v any) []mPair {
	pairs, _ := v.([]mPair)
	return pairs
}

// mGen makes rules and arguments of hostile shapes.
type mGen struct{ rng *rand.Rand }

func pickOf[T any](g mGen, all ...T) T { return all[g.rng.IntN(len(all))] }

func (g mGen) key() string {
	return pickOf(g, "path", "path", "Path", "PATH", "a", "b", "a.b", "tool", "paths", "A")
}

func (g mGen) value(depth int) any {
	n := g.rng.IntN(12)
	if depth > 2 {
		n = g.rng.IntN(9)
	}
	switch n {
	case 0, 1, 2, 3:
		return pickOf(g, "/srv/a", "/etc/passwd", "/SRV/a", "/srv/../etc", "x", "X", "10", "1e1", "", "a/b.go", "b.go", "A\nb", "true", "null", "1e401", `"x"`)
	case 4, 5, 6:
		return mNum(pickOf(g, "10", "1e1", "10.0", "0.99999999999999999999", "1", "100", "1e400", "1e401", "-0", "0", "1E-401", "100e-1"))
	case 7:
		return pickOf(g, true, false)
	case 8:
		return nil
	case 9, 10:
		list := []any{}
		for range g.rng.IntN(3) {
			list = append(list, g.value(depth+1))
		}
		return list
	}
	return g.object(depth + 1)
}

func (g mGen) object(depth int) []mPair {
	pairs := []mPair{}
	for range g.rng.IntN(4) {
		pairs = append(pairs, mPair{g.key(), g.value(depth)})
	}
	return pairs
}

func (g mGen) cond() mCond {
	if g.rng.IntN(8) == 0 {
		return mCond{toolNeedle: true, value: pickOf(g, "read", "re*", "RE*", "*", "a/?", "x")}
	}
	c := mCond{path: []string{g.key()}, op: pickOf(g, Equals, Prefix, Glob, Range)}
	for range g.rng.IntN(3) {
		c.path = append(c.path, pickOf(g, "*", g.key()))
	}
	switch c.op {
	case Equals:
		c.value = pickOf(g, "10", "1e1", "x", "X", `"x"`, `"10"`, "/etc/passwd", "1e401x", "0", "100")
	case Prefix:
		c.value = pickOf(g, "/srv/", "/", "x", "1", "t", "/SRV")
	case Glob:
		c.value = pickOf(g, "*", "**", "/srv/*", "/srv/**", "**/*.go", "*.go", "x", "/**/a", "?", "*srv*", "1*")
	case Range:
		c.lo, c.hi = pickOf(g, "1", "0", "10.0", "-1"), pickOf(g, "100", "10", "1e400")
		c.value = c.lo + ".." + c.hi
	}
	return c
}

func (g mGen) conds() []mCond {
	var out []mCond
	for range g.rng.IntN(3) {
		out = append(out, g.cond())
	}
	return out
}

// TestTheModelAgrees holds Judge to the model on random rules and arguments.
func TestTheModelAgrees(t *testing.T) {
	seen := map[string]int{}
	for seed := range testkit.Seeds(t, 20_000) {
		g := mGen{rand.New(rand.NewPCG(seed, 2))}
		var rules []mRule
		var kept []*record.Rule
		for range g.rng.IntN(4) {
			r := mRule{pickOf(g, record.Allow, record.Allow, record.Deny, record.Ask), pickOf(g, "*", "read", "re*", "READ", "a/*", "?*"), g.conds(), g.conds()}
			k := &record.Rule{Effect: r.effect, Tool: r.tool}
			for _, c := range r.when {
				k.When = append(k.When, c.condition())
			}
			for _, c := range r.unless {
				k.Unless = append(k.Unless, c.condition())
			}
			if err := (Rules{}).Rule(k); err != nil {
				t.Fatalf("seed %d: %v: %v", seed, k, err)
			}
			rules, kept = append(rules, r), append(kept, k)
		}
		fallback := pickOf(g, record.Ask, record.Ask, record.Deny)
		kept = append(kept, &record.Rule{Default: true, Effect: fallback})
		var args any = g.object(0)
		if g.rng.IntN(20) == 0 {
			args = g.value(0)
		}
		q := &record.Question{Tool: pickOf(g, "read", "Read", "a/b", "x"), Arguments: json.RawMessage(mText(args))}
		var declared map[string]bool
		if g.rng.IntN(4) == 0 {
			declared = map[string]bool{"path": true, "a": true}
			q.Schema = json.RawMessage(`{"type":"object","properties":{"path":{},"a":{}}}`)
		}
		if args == nil {
			args = []mPair{} // null is no arguments
		}
		want := mJudge(rules, fallback, q.Tool, args, declared)
		got := Rules{}.Judge(kept, q)
		if seen[want]++; got.Effect != want {
			t.Fatalf("seed %d: %s, and the model says %s: %v %s %s\n%+v", seed, got.Effect, want, kept, q.Tool, q.Arguments, got.Notes)
		}
	}
	t.Log(seen)
}
