package window

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// hostile returns outputs that are large or odd.
func hostile() map[string]*pool.Result {
	numbers := "[" + strings.Repeat("12345,", 999_999) + "1]"
	return map[string]*pool.Result{
		"1 MB without a space":   {Text: strings.Repeat("x1Y", 350_000)},
		"100,000 lines of log":   {Text: strings.Repeat("2024-05-01 10:00:00 INFO served a request\n", 100_000)},
		"1,000,000 numbers":      {JSON: json.RawMessage(numbers)},
		"numbers as text":        {Text: numbers},
		"10,000 levels":          {JSON: json.RawMessage(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))},
		"20,000 levels":          {Text: strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)},
		"open brackets":          {Text: strings.Repeat(`{"a":[`, 100_000)},
		"3,000 levels, middling": {Text: strings.Repeat("[", 3_000) + "1" + strings.Repeat("]", 3_000)},
		"only blanks":            {Text: strings.Repeat(" ", 1_000_000)},
		"only line ends":         {Text: strings.Repeat("\n", 1_000_000)},
		"zero bytes":             {Text: strings.Repeat("\x00", 1_000_000)},
		"broken UTF-8":           {Text: strings.Repeat("\xff\xc3", 500_000)},
		"fences":                 {Text: strings.Repeat("```\n", 200_000)},
		"a line of dots":         {Text: strings.Repeat(".", 1_000_000)},
		"a data address":         {Text: "data:image/png;base64," + strings.Repeat("iVBORw0KGgo1", 80_000)},
		"our own marks":          {Text: strings.Repeat("[EXTERNALIZED: a | b | c, 1 bytes]\n[HISTORY_SUMMARY] 3 earlier messages\n", 5_000)},
	}
}

func TestHostileOutputs(t *testing.T) {
	testkit.Sequential(t)
	for name, result := range hostile() {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			w.user("look at this")
			r := *result
			w.use(&r)
			w.assistant(r.Text[:min(len(r.Text), 200_000)])
			w.user("and now?")
			o := options(3000)
			o.TextRules = textRules
			report, err := Standard(o, nil, nil).Run(t.Context(), w.d)
			if err != nil {
				t.Fatal(err)
			}
			if report.After > report.Limit {
				t.Errorf("%d tokens, may be %d", report.After, report.Limit)
			}
			text := r.Text[:min(len(r.Text), 64<<10)]
			for _, rule := range OutputRules() {
				once := rule.Apply(text)
				if rule.Apply(once) != once {
					t.Errorf("%s as %s is not idempotent", rule.Name, rule.Kind)
				}
			}
		})
	}
}

// TestOutputsBySizeAndKind: outputs of one kind in three sizes: unchanged, shortened, put aside.
func TestOutputsBySizeAndKind(t *testing.T) {
	log := func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "2024-05-01 10:%02d:%02d INFO request %d\n", i/60, i%60, i)
		}
		return b.String()
	}
	trace := "Traceback (most recent call last):\n" + strings.Repeat("  File \"/a.py\", line 1, in f\n    g()\n", 90) + "ValueError: bad\n"
	for _, c := range []struct {
		name, in string
		begins   string
		holds    []string
		whole    bool
	}{
		{name: "small", in: log(1500), whole: true},
		{name: "log", in: log(5000), begins: "2024-05-01 10:00:00", holds: []string{"lines left out"}},
		{name: "large log", in: log(10000), begins: "[EXTERNALIZED: ", holds: []string{"| LOG | log of ", " bytes]"}},
		{name: "error", in: trace, begins: "Traceback", holds: []string{"frames left out", "ValueError: bad"}},
		{name: "large JSON", in: `{"a":1,"b":[` + strings.Repeat("1,", 6000) + `1],"c":{"d":"} , ]"}}`, begins: "[EXTERNALIZED: ", holds: []string{"| JSON | JSON object with 3 fields, 12"}},
		{name: "JSON list", in: "[" + strings.Repeat(`{"n":1},`, 5000) + `{}]`, begins: "[EXTERNALIZED: ", holds: []string{"| JSON | JSON array of 5001 items,"}},
		{name: "small binary", in: "\x00\x01\x02", begins: "[EXTERNALIZED: ", holds: []string{"| BINARY |", "3 bytes]"}},
		{name: "words", in: strings.Repeat("word ", 1000), begins: "word word", holds: []string{"[… 840 words left out …]"}},
		{name: "code", in: strings.Repeat("word ", 500) + "\n```go\n" + strings.Repeat("code() ", 100) + "\n```\n", holds: []string{strings.Repeat("code() ", 100), "words left out"}},
		{name: "no spaces", in: strings.Repeat("ab漢", 1000), holds: []string{"bytes left out"}},
	} {
		f := smaller(nil, "", &pool.Result{Text: c.in}, true, SmallOutput)
		text, what := f.text, f.what
		if c.whole {
			if what != "" {
				t.Errorf("%s: %s", c.name, what)
			}
			continue
		}
		if len(text) >= len(c.in) && len(c.in) > 100 || !strings.HasPrefix(text, c.begins) || what == "" {
			t.Errorf("%s: %d bytes of %d, %s: %.200s", c.name, len(text), len(c.in), what, text)
		}
		for _, h := range c.holds {
			if !strings.Contains(text, h) {
				t.Errorf("%s: %q is not in %.300s", c.name, h, text)
			}
		}
	}
}

func TestShortenJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":null,"b":"","c":[],"d":{},"e":0,"f":false}`:               `{"e":0,"f":false}`,
		`{"a":{"b":{"c":null}},"z":1}`:                                  `{"z":1}`,
		`[null,"",1]`:                                                   `[null,"",1]`,
		`{"n":12345678901234567890.10,"b":"<&>"}`:                       `{"n":12345678901234567890.10,"b":"<&>"}`,
		`{"l":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]}`: `{"l":[1,2,3,4,5,6,7,8,9,10,"… 11 more items"]}`,
		`{"l":[1,2,3,4,5,6,7,8,9,10,11,12]}`:                            `{"l":[1,2,3,4,5,6,7,8,9,10,11,12]}`,
		`not json`:                                                      `not json`,
		`{"cut":`:                                                       `{"cut":`,
	} {
		if got := shortenJSON(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for want, texts := range map[enhancer.Kind][]string{
		enhancer.JSON:   {`{"a":1}`, ` [1] `},
		enhancer.YAML:   {"a: 1\nb:\n  - x\n  - y\nc: z\nd: w\n"},
		enhancer.Log:    {strings.Repeat("10:00:00 x\n", 12), strings.Repeat("ERROR: it broke\n", 12), strings.Repeat("[2024-01-01T00:00:00Z] x\n", 12)},
		enhancer.Error:  {"panic: oh\n\ngoroutine 1 [running]:\nmain.main()", "Exception in thread \"main\" java.lang.X\n\tat a.b.C(D.java:1)"},
		enhancer.Binary: {"a\x00b", strings.Repeat("aGVsbG8gd29ybGQ1", 40), "\x01\x02\x03\x04"},
		enhancer.Text:   {"", "hello", "some prose: with a colon", "https://example.com", strings.Repeat("a", 300)},
	} {
		for _, text := range texts {
			if got := KindOf(text, false); got != want {
				t.Errorf("%.40q is %s, want %s", text, got, want)
			}
		}
	}
}

func TestPages(t *testing.T) {
	text := strings.Repeat("a line of text 漢\n", 2000)
	pages := splitPages(text)
	if strings.Join(pages, "") != text || len(pages) < 5 {
		t.Fatalf("%d pages do not add up", len(pages))
	}
	for i, p := range pages {
		if len(p) > LargeOutput-100 {
			t.Errorf("page %d has %d bytes: it would be put aside", i+1, len(p))
		}
	}
	if got, failed := page([]byte(text), 99); !failed || !strings.Contains(got, "only") {
		t.Errorf("page 99: %q", got)
	}
	if got, failed := page([]byte("\xff\x00"), 1); !failed {
		t.Errorf("binary: %q", got)
	}
}

// TestReadingBackStays: an output that the model read back is not put aside again, however little room there was before.
func TestReadingBackStays(t *testing.T) {
	w := newWriter(3)
	w.user("read it")
	w.d.Messages = append(w.d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Position: 2, Message: &pool.Message{ID: w.id(), Role: pool.Assistant,
		Calls: []pool.Call{{ID: "r", Tool: ArtifactTool.Name, Arguments: json.RawMessage(`{"key":"abcd"}`)}}}}})
	text := strings.Repeat("a word ", 800)
	w.add(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "r", Text: text}})
	for range 4 {
		w.user("next")
		w.use(&pool.Result{Text: w.words(900)})
		w.assistant("ok")
	}
	o := options(4000)
	win := o.Window(nil)
	if err := Outputs(win, o).Enhance(t.Context(), w.d); err != nil {
		t.Fatal(err)
	}
	if w.d.Messages[2].Result.Text != text {
		t.Errorf("the page was shortened: %.100s", w.d.Messages[2].Result.Text)
	}
	if w.d.Messages[5].Result.Text == "" || w.d.Messages[5].State != enhancer.Pruned {
		t.Errorf("the other output was left: %s", w.d.Messages[5].State)
	}
}

func TestToolIsOfferedOnceSomethingWasPutAside(t *testing.T) {
	for _, aside := range []bool{false, true} {
		w := newWriter(4)
		w.user("go")
		text := "short"
		if aside {
			text = strings.Repeat("line of a log that is long\n", 2000)
		}
		w.use(&pool.Result{Text: text})
		w.assistant("done")
		w.user("and now?")
		o := options(3000)
		o.Offer, o.PruneThreshold = true, 1_000_000
		if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
		if got := len(w.d.Tools) == 1 && w.d.Tools[0].Name == ArtifactTool.Name; got != aside {
			t.Errorf("put aside %v: tools %v", aside, w.d.Tools)
		}
	}
}
