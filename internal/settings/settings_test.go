package settings

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// of parses "a=1 b=x" into settings; null removes one.
func of(s string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, f := range strings.Fields(s) {
		k, v, _ := strings.Cut(f, "=")
		if out[k] = json.RawMessage(v); !json.Valid(out[k]) {
			out[k] = json.RawMessage(`"` + v + `"`)
		}
	}
	return out
}

// text is the inverse of of, in alphabetical order.
func text(m map[string]json.RawMessage) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		words = append(words, k+"="+strings.Trim(string(m[k]), `"`))
	}
	return strings.Join(words, " ")
}

func TestInForce(t *testing.T) {
	for _, test := range []struct {
		name   string
		places []string // the store, the context, the branch …
		want   string
	}{
		{"nearer wins", []string{"model=a budget=1", "model=b", "model=c"}, "budget=1 model=c"},
		{"a key beside its address", []string{"", "", "base_url=http://x key_env=K provider=openai"}, "base_url=http://x key_env=K provider=openai"},
		{"a key of a wider place goes to no nearer address", []string{"key_env=K", "base_url=http://x"}, "base_url=http://x provider=openai"},
		{"a key of a nearer place goes to no wider address", []string{"base_url=http://x provider=openai", "key_env=K"}, "base_url=http://x provider=openai"},
		{"…nor in place of its own", []string{"base_url=http://x key_env=A provider=openai", "key_env=B"}, "base_url=http://x key_env=A provider=openai"},
		{"another provider leaves the address and its key", []string{"base_url=http://x key_env=A provider=openai", "provider=anthropic"}, "provider=anthropic"},
		{"the same provider keeps them", []string{"base_url=http://x key_env=A provider=openai", "provider=openai model=m"}, "base_url=http://x key_env=A model=m provider=openai"},
		{"a model's name does not leave it", []string{"base_url=http://x provider=openai", "model=claude-x"}, "base_url=http://x model=claude-x provider=openai"},
		{"an address has a provider of its own", []string{"provider=anthropic", "base_url=http://x"}, "base_url=http://x provider=openai"},
		{"a key without any address is nobody's", []string{"key_env=A", "model=gpt-5"}, "model=gpt-5"},
		{"…nor a provider's of another place", []string{"key_env=A", "provider=anthropic"}, "provider=anthropic"},
		{"…on either side", []string{"provider=anthropic", "key_env=A"}, "provider=anthropic"},
		{"a key beside its provider", []string{"provider=openai key_env=A", "model=gpt-5"}, "key_env=A model=gpt-5 provider=openai"},
		{"…is not another's", []string{"provider=openai key_env=A", "provider=anthropic"}, "provider=anthropic"},
		{"…nor a nearer address's", []string{"provider=openai key_env=A", "base_url=http://x"}, "base_url=http://x provider=openai"},
		{"…nor a wider one's", []string{"base_url=http://x", "provider=openai key_env=A"}, "base_url=http://x provider=openai"},
		{"null is no provider", []string{"provider=null key_env=A"}, "provider=null"},
		{"summaries with a key alone", []string{"compact.key_env=A provider=openai"}, "provider=openai"},
		{"…beside their provider", []string{"compact.key_env=A compact.provider=openai"}, "compact.key_env=A compact.provider=openai"},
		{"vectors with a key alone", []string{"embedding.key_env=A provider=openai"}, "provider=openai"},
		{"an organization goes with its address", []string{"organization=o", "base_url=http://x"}, "base_url=http://x provider=openai"},
		{"summaries likewise", []string{"compact.key_env=A", "compact.base_url=http://x"}, "compact.base_url=http://x compact.provider=openai"},
		{"vectors likewise", []string{"embedding.key_env=A", "embedding.base_url=http://x"}, "embedding.base_url=http://x"},
		{"what is held back is not there", []string{"model=m", "held.base_url=http://x held.key_env=K", "held.mode=y"}, "model=m"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var places []map[string]json.RawMessage
			for _, p := range test.places {
				places = append(places, of(p))
			}
			if got := text(InForce(places...)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	for _, test := range []struct{ have, change, want string }{
		{"", "base_url=http://x", "base_url=http://x provider=openai"},
		{"", "base_url=http://x provider=ollama key_env=K", "base_url=http://x key_env=K provider=ollama"},
		{"provider=ollama", "base_url=http://x", "base_url=http://x"},
		{"base_url=http://x key_env=K provider=openai", "base_url=y", "base_url=y key_env=null"},
		{"base_url=http://x key_env=K provider=openai", "base_url=http://x", "base_url=http://x"},
		{"base_url=http://x key_env=K provider=openai", "base_url=y key_env=L", "base_url=y key_env=L"},
		{"base_url=http://x key_env=K provider=openai", "base_url=null", "base_url=null key_env=null provider=null"},
		{"base_url=http://x key_env=K provider=ollama", "base_url=null", "base_url=null key_env=null"},
		{"key_env=K", "base_url=y", "base_url=y key_env=null provider=openai"},
		{"compact.base_url=http://x compact.key_env=K", "compact.base_url=y", "compact.base_url=y compact.key_env=null compact.provider=openai"},
		{"embedding.base_url=http://x embedding.key_env=K", "embedding.base_url=y", "embedding.base_url=y embedding.key_env=null"},
		{"", "base_url=null", "base_url=null"},
		{"provider=openai key_env=K", "provider=anthropic", "key_env=null provider=anthropic"},
		{"provider=openai key_env=K", "provider=null", "key_env=null provider=null"},
		{"provider=openai key_env=K", "provider=anthropic key_env=L", "key_env=L provider=anthropic"},
		{"provider=openai key_env=K", "provider=openai model=m", "model=m provider=openai"},
		{"base_url=http://x provider=openai key_env=K", "provider=ollama", "provider=ollama"},
		{"compact.provider=openai compact.key_env=K", "compact.provider=gemini", "compact.key_env=null compact.provider=gemini"},
		{"", "model=m", "model=m"},
	} {
		if got := text(Complete(of(test.have), of(test.change))); got != test.want {
			t.Errorf("%q and %q: %s, want %s", test.have, test.change, got, test.want)
		}
	}
}

// TestHold: only harmless settings pass; settings that the table does not know do not.
func TestHold(t *testing.T) {
	const harmless = "model=m provider=openai temperature=1 top_p=1 max_tokens=5 stop=x thinking=low budget=1 headroom=0.1 keep_blocks=1 digest_tokens=1 squeeze=true " +
		"prune.threshold=1 prune.keep=1 prune.policy=auto compact.at=0.5 compact.keep=1 compact.max_messages=1 compact.keep_messages=1 compact.provider=openai compact.model=m compact.system=s resume.share=0.5 cache=true cache.ttl=5m"
	const others = "base_url=http://x key_env=K organization=o embedding.model=m embedding.base_url=http://x embedding.key_env=K compact.base_url=http://x compact.key_env=K mode=m openai.user=u " +
		"anthropic.mcp_servers=[] gemini.x=1 openai-responses.tools=[] ollama.x=1 nobody.knows=1 later=2 compact. =1 held.base_url=y app.x=1 profile=p"
	in := of(harmless + " " + strings.ReplaceAll(others, " held.base_url=y", ""))
	out, held := Hold(in)
	if got := text(InForce(out)); got != text(of(harmless)) {
		t.Errorf("in force: %s", got)
	}
	if len(held) != len(in)-len(of(harmless)) || !slices.IsSorted(held) {
		t.Errorf("held: %q", held)
	}
	if again, _ := Hold(out); !reflect.DeepEqual(again, out) {
		t.Errorf("held twice: %s", text(again))
	}
	taken := Complete(out, Accept(out, "mode", "no such"))
	if text(taken) != "held.mode=null mode=m" {
		t.Errorf("accepted: %s", text(taken))
	}
	known := slices.DeleteFunc(slices.Clone(held), func(name string) bool { return Check(name, in[name]) != nil })
	if all := Accept(out); len(all) != 2*len(known) || len(known) >= len(held) || text(all) == "" || all["later"] != nil {
		t.Errorf("accepted all: %s", text(all))
	}
	if out, held := HoldAll(of("model=m base_url=http://x")); text(InForce(out)) != "" || strings.Join(held, " ") != "base_url model" {
		t.Errorf("%s, %q", text(out), held)
	}
	if said := Said(out); text(said) != text(in) {
		t.Errorf("said: %s", text(said))
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range rows() {
		if s.Name == "" || seen[s.Name] || s.Does == "" || s.Type == "" || s.Harmless && strings.HasSuffix(s.Name, ".") {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
		if row, ok := Lookup(s.Name); !strings.HasSuffix(s.Name, ".") && (!ok || row != s) {
			t.Errorf("%s is found as %+v", s.Name, row)
		}
	}
	for _, name := range []string{"", "openai.", "openai", "models", "compact.", "Model", "app."} {
		if row, ok := Lookup(name); ok && name != "openai." && name != "app." {
			t.Errorf("%q is found as %+v", name, row)
		}
	}
}
