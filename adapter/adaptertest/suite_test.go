package adaptertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	_ "github.com/chatctx/chatctx/adapter/openai"
)

// TestWithoutAJudge: the suite fails for an adapter of which nobody says what its provider refuses, and for one whose provider refuses everything. The test runs itself
// again, since it has to see a test fail.
func TestWithoutAJudge(t *testing.T) {
	const variable = "CHATCTX_TEST_JUDGE"
	service, err := adapter.ServiceOf(adapter.OpenAI)
	if err != nil {
		t.Fatal(err)
	}
	subject := Of("unknown", service.Adapter, "gpt-4o")
	switch os.Getenv(variable) {
	case "none":
		Run(t, subject)
		return
	case "strict":
		subject.Judge = func(string, []byte) error { return os.ErrInvalid }
		Run(t, subject)
		return
	}
	for judge, says := range map[string]string{"none": "has no Judge", "strict": os.ErrInvalid.Error()} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWithoutAJudge$")
		cmd.Env = append(os.Environ(), variable+"="+judge)
		out, err := cmd.CombinedOutput()
		began := strings.Contains(string(out), "--- FAIL: TestWithoutAJudge/") // with a panic no test of the suite ends
		if err == nil || !strings.Contains(string(out), says) || !strings.Contains(string(out), "--- FAIL: TestWithoutAJudge") || began != (judge == "strict") || strings.Contains(string(out), "panic: ") {
			t.Errorf("with the judge %q: %v, and not %q:\n%.2000s", judge, err, says, out)
		}
	}
}
