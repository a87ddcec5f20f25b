package tokens

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/pkoukk/tiktoken-go"
)

// TestModelsKeepTheirEncoding reads the names that were known before tiktoken-go's tables were asked. Other counts of a model's old messages are kept in stores.
func TestModelsKeepTheirEncoding(t *testing.T) {
	f, err := os.Open("testdata/models.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var name, encoding, how string
		if _, err := fmt.Sscanf(lines.Text(), "%q %s %s", &name, &encoding, &how); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		m := ForModel(name)
		if string(m.Encoding) != encoding || m.Own != (how == "own") {
			t.Errorf("%q: %s, own %v; it was %s, %s", name, m.Encoding, m.Own, encoding, how)
		}
		if m.Own {
			known++
		}
	}
	if known < 120 {
		t.Errorf("the list has only %d names", known)
	}
}

// TestLibrarysModels: each name of the library's tables has an encoding that is counted here, with a provider before it and a version behind it too.
func TestLibrarysModels(t *testing.T) {
	for name, encoding := range tiktoken.MODEL_TO_ENCODING {
		want, ok := encodingNamed(encoding)
		if m := ForModel("OpenAI/" + name); !ok || m.Encoding != want || !m.Own || m.Family != "openai" {
			t.Errorf("%s is %s to the library, and %+v here", name, encoding, m)
		}
	}
	for prefix, encoding := range tiktoken.MODEL_PREFIX_TO_ENCODING {
		want, ok := encodingNamed(encoding)
		if m := ForModel("ft:" + prefix + "x:org::id"); !ok || m.Encoding != want || !m.Own {
			t.Errorf("%s… is %s to the library, and %+v here", prefix, encoding, m)
		}
	}
	for name, want := range map[string]Encoding{"gpt2": R50k, "text-davinci-003": P50k, "text-davinci-edit-001": P50kEdit, "davinci": R50k, "gpt-35-turbo-16k": CL100k} {
		if m := ForModel(name); m.Encoding != want || !m.Own {
			t.Errorf("%s: %+v, want %s", name, m, want)
		}
	}
	if m := ForModel("gpt-35-turbo"); m.Window != 16_385 {
		t.Errorf("Azure's name of GPT-3.5 has the window %d", m.Window)
	}
}

// TestUnlistedModels fails when the library learns one of our rows: then the row goes, or gets an example that the library still lacks.
func TestUnlistedModels(t *testing.T) {
	for _, r := range unlisted {
		if e := ofLibrary(r.example); e != "" {
			t.Errorf("tiktoken-go knows %s as %s now: the row %s is not needed for it", r.example, e, r.names)
		}
		if m := ForModel(r.example); m.Encoding != r.encoding || !m.Own {
			t.Errorf("%s: %+v", r.example, m)
		}
	}
	rows := unlisted
	defer func() { unlisted = rows }()
	for i, r := range rows {
		unlisted = append(append(rows[:0:0], rows[:i]...), rows[i+1:]...)
		if m := ForModel(r.example); m.Encoding == r.encoding && m.Own {
			t.Errorf("the row %s does nothing for %s", r.names, r.example)
		}
	}
	if e := ofLibrary("gpt-35-turbo"); e != "" {
		t.Error("tiktoken-go knows Azure's names now: baseName need not mend them for the encoding")
	}
}
