package exchange

import (
	"github.com/chatctx/chatctx/chatctx/record"
	"strings"
	"testing"
)

// fuzzFormat gives any bytes to a reader, past detection. Nothing panics or hangs, the store accepts what is read, and ids are unique.
func fuzzFormat(f *testing.F, name string, read func(*reading) error) {
	f.Helper()
	addSeeds(f, "testdata/formats/"+name+"/*.json*", "testdata/formats/"+name+"/*/*.json*")
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newFuzzReading(text, func(in *record.Incoming) error {
			checkIncoming(t, in)
			ids := map[string]bool{}
			for _, n := range in.Nodes {
				if ids[n.ID] {
					t.Errorf("the id %q twice", n.ID)
				}
				ids[n.ID] = true
			}
			return nil
		})
		r.format = name
		if err := read(r); err != nil && !strings.Contains(err.Error(), "cut off") {
			t.Fatal(err)
		}
	})
}

func FuzzClaudeCode(f *testing.F) { fuzzFormat(f, claudeCodeName, readClaudeCode) }
func FuzzCodex(f *testing.F)      { fuzzFormat(f, codexName, readCodex) }
func FuzzClaudeAI(f *testing.F)   { fuzzFormat(f, claudeAIName, readClaudeAI) }
func FuzzOpenWebUI(f *testing.F)  { fuzzFormat(f, openWebUIName, readOpenWebUI) }
func FuzzLibreChat(f *testing.F)  { fuzzFormat(f, libreChatName, readLibreChat) }
func FuzzGemini(f *testing.F)     { fuzzFormat(f, geminiName, readGemini) }
func FuzzTakeout(f *testing.F)    { fuzzFormat(f, takeoutName, readTakeout) }
func FuzzAIStudio(f *testing.F)   { fuzzFormat(f, aiStudioName, readAIStudio) }
func FuzzOpenAI(f *testing.F)     { fuzzFormat(f, openAIName, readOpenAI) }
func FuzzAnthropic(f *testing.F)  { fuzzFormat(f, anthropicName, readAnthropic) }
func FuzzShareGPT(f *testing.F)   { fuzzFormat(f, shareGPTName, readShareGPT) }
func FuzzLangChain(f *testing.F)  { fuzzFormat(f, langChainName, readLangChain) }
func FuzzVercel(f *testing.F)     { fuzzFormat(f, vercelName, readVercel) }
func FuzzOASST(f *testing.F)      { fuzzFormat(f, oasstName, readOASST) }
func FuzzPi(f *testing.F)         { fuzzFormat(f, piName, readPi) }
func FuzzLlama(f *testing.F)      { fuzzFormat(f, llamaName, readLlama) }
