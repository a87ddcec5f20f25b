//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestPasswordOnTheLine: a password in --store is taken, with a hint where others could read it, and is told nowhere: not in what commands say, not in a record, not in files, not where a copy went.
func TestPasswordOnTheLine(t *testing.T) {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	const word = "S3cr3tW0rd"
	const hint = "read the password in the list of programs"
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("CHATCTX_STORE", "")
	schema := pgtest.Name()
	direct := pgtest.Server.URL(schema)
	withWord := strings.Replace(direct, "postgres@/", "postgres:"+word+"@/", 1)
	away := strings.Replace(withWord, pgtest.Server.Dir(), t.TempDir(), 1)
	back := strings.Replace(withWord, schema, schema+"back", 1)
	file := filepath.Join(t.TempDir(), "copy.db")
	for _, test := range []struct {
		store string
		code  int
		args  []string
	}{
		{withWord, 0, []string{"init"}}, {withWord, 5, []string{"init"}}, {withWord, 0, []string{"new", "One"}}, {withWord, 0, []string{"add", "user", "hello"}},
		{withWord, 0, []string{"status", "--json"}}, {withWord, 0, []string{"op", "log", "--json"}}, {withWord, 0, []string{"check"}}, {withWord, 0, []string{"stats"}},
		{withWord, 2, []string{"backup", "x"}}, {withWord, 3, []string{"log", "--context", "none"}}, {away, 14, []string{"ls"}},
		{withWord, 0, []string{"copy", "--keep", withWord, file}}, {withWord, 0, []string{"copy", file, back}}, {file, 5, []string{"ls"}},
	} {
		var out, errOut bytes.Buffer
		code := Main(append([]string{"--store", test.store}, test.args...), strings.NewReader(""), &out, &errOut)
		if said := out.String() + errOut.String(); strings.Contains(said, word) {
			t.Errorf("%v tells the password: %s", test.args, said)
		}
		if code != test.code {
			t.Errorf("%v ends with %d, want %d: %s", test.args, code, test.code, &errOut)
		}
		hints := 1
		if test.store == file || slices.Contains(test.args, "--json") {
			hints = 0
		}
		if strings.Count(errOut.String(), hint) != hints {
			t.Errorf("%v gives this for a hint: %s", test.args, &errOut)
		}
	}
	t.Setenv("CHATCTX_STORE", withWord)
	var out, errOut bytes.Buffer
	if code := Main([]string{"ls"}, strings.NewReader(""), &out, &errOut); code != 0 || strings.Contains(errOut.String(), hint) {
		t.Errorf("from the environment it ends with %d: %s", code, &errOut)
	}
	for _, path := range []string{file, os.Getenv("XDG_STATE_HOME")} {
		tells(t, path, word)
	}
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var records, all int
	err = conn.QueryRow(t.Context(), "select count(*) filter (where position($1::bytea in value) > 0), count(*) from kv", []byte(word)).Scan(&records, &all)
	if err != nil || records > 0 || all < 10 {
		t.Errorf("%d of %d records tell the password: %v", records, all, err)
	}
}

// tells fails where a word stands in a file, or in one below a folder.
func tells(t *testing.T, path, word string) {
	t.Helper()
	err := filepath.WalkDir(path, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("%s tells the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
