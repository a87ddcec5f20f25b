// Package chatctx_test holds what is true of the project as a whole.
package chatctx_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/chatctx/chatctx/"

// guarded are the packages of the standard library that a room may import only where the table says so: those that reach outside, print or end the program.
var guarded = []string{"database/sql", "flag", "log", "net", "net/http", "os/exec", "plugin", "syscall", "unsafe"}

// rooms says for each package what it imports of the project, of other modules and of the guarded packages, and why. An import that does not stand here fails, and
// so does a line that nothing needs. They are in order: a room stands below those that import it.
var rooms = map[string]map[string]string{
	"internal/jsontree":     {},
	"internal/codec":        {"internal/jsontree": "JSON in place"},
	"internal/fold":         {},
	"internal/provider/out": {"internal/jsontree": "JSON in place"},
	"internal/words": {
		"github.com/rivo/uniseg":         "cuts by Unicode",
		"golang.org/x/text/unicode/norm": "one normal form",
		"internal/fold":                  "folds case",
	},
	"chatctx/kv":       {},
	"internal/watch":   {"github.com/fsnotify/fsnotify": "watches files"},
	"chatctx/secrets":  {},
	"internal/plural":  {},
	"internal/firstgc": {},
	"internal/input": {
		"golang.org/x/sys/unix":    "measures pipes",
		"golang.org/x/sys/windows": "measures pipes",
		"unsafe":                   "calls Windows",
	},
	"internal/nolink": {},
	"internal/charset": {
		"golang.org/x/text/encoding/charmap": "one-byte sets",
	},
	"internal/charset/eastasian": {
		"internal/charset":                              "further encodings",
		"golang.org/x/text/encoding":                    "reads and writes texts",
		"golang.org/x/text/encoding/japanese":           "Shift-JIS and EUC-JP",
		"golang.org/x/text/encoding/korean":             "EUC-KR",
		"golang.org/x/text/encoding/simplifiedchinese":  "GBK and GB18030",
		"golang.org/x/text/encoding/traditionalchinese": "Big5",
	},
	"internal/leftover": {
		"syscall": "looks for processes",
	},
	"internal/settings": {"internal/jsontree": "texts in JSON"},
	"internal/mutate": {
		"os/exec": "starts programs",
	},
	"internal/figures": {
		"os/exec": "runs git and go",
	},
	"internal/pgtest": {
		"net":     "opens sockets",
		"os/exec": "starts programs",
		"syscall": "calls the system",
	},
	"internal/sqlite": {},
	"internal/testkit": {
		"os/exec": "finds programs",
		"syscall": "limits files",
	},
	"internal/storetest": {
		"chatctx/record":               "the records",
		"chatctx":                      "the front door",
		"chatctx/kv":                   "reads and writes",
		"internal/base":                "keys and errors",
		"internal/branchstore":         "names of buckets",
		"internal/poolstore":           "names of buckets",
		"internal/stored":              "bytes of records",
		"pool":                         "messages and ids",
		"github.com/fxamacker/cbor/v2": "shows records",
	},
	"internal/index": {
		"chatctx/kv":                   "reads and writes",
		"github.com/fxamacker/cbor/v2": "encodes records",
	},
	"chatctx/kv/internal/door": {
		"chatctx/kv": "its errors",
	},
	"chatctx/kv/internal/watch": {
		"chatctx/kv": "reads and writes",
	},
	"chatctx/kv/kvtest": {
		"internal/engine": "purposes and roles",
		"chatctx/kv":      "reads and writes",
	},
	"internal/branchstore": {
		"pool":            "messages and ids",
		"internal/stored": "bytes of records",
		"chatctx/kv":      "reads and writes",
		"branch":          "histories",
	},
	"internal/poolstore": {
		"pool":              "messages and ids",
		"internal/stored":   "bytes of records",
		"internal/jsontree": "JSON in place",
		"chatctx/kv":        "reads and writes",
	},
	"internal/stored": {
		"github.com/fxamacker/cbor/v2": "encodes records",
		"chatctx/kv":                   "reads and writes",
	},
	"pool": {
		"internal/stored":              "bytes of records",
		"internal/jsontree":            "JSON in place",
		"github.com/fxamacker/cbor/v2": "encodes records",
		"github.com/google/uuid":       "makes ids",
	},
	"adapter/wire": {
		"internal/poolstore": "messages in a transaction",
		"pool":               "messages and ids",
		"internal/jsontree":  "JSON in place",
		"net":                "opens sockets",
		"net/http":           "sends requests",
	},
	"branch": {
		"pool": "messages and ids",
	},
	"internal/engine": {
		"chatctx/kv": "its transactions",
	},
	"chatctx/kv/boltkv": {
		"internal/leftover":           "files of killed programs",
		"chatctx/kv":                  "reads and writes",
		"chatctx/kv/internal/door":    "ends with Close",
		"chatctx/kv/internal/watch":   "tells of changes",
		"go.etcd.io/bbolt":            "keeps the file",
		"go.etcd.io/bbolt/errors":     "tells its errors",
		"golang.org/x/sync/semaphore": "bounds waiting threads",
		"golang.org/x/sys/unix":       "locks and maps",
		"golang.org/x/sys/windows":    "locks and maps",
		"syscall":                     "calls the system",
		"unsafe":                      "calls the system",
		"internal/jsontree":           "texts in JSON",
		"internal/nolink":             "follows no link",
		"internal/engine":             "purposes and roles",
	},
	"chatctx/kv/memkv": {
		"chatctx/kv":                "reads and writes",
		"chatctx/kv/internal/door":  "ends with Close",
		"chatctx/kv/internal/watch": "tells of changes",
		"github.com/tidwall/btree":  "keeps order",
	},
	"chatctx/kv/pgkv": {
		"chatctx/kv":                      "reads and writes",
		"chatctx/kv/internal/door":        "ends with Close",
		"chatctx/kv/internal/watch":       "tells of changes",
		"github.com/jackc/pgx/v5":         "speaks to PostgreSQL",
		"github.com/jackc/pgx/v5/pgconn":  "knows server errors",
		"github.com/jackc/pgx/v5/pgtype":  "types of values",
		"github.com/jackc/pgx/v5/pgxpool": "pools connections",
		"internal/engine":                 "purposes and roles",
	},
	"internal/provider/wiretest": {
		"adapter/wire": "sends and streams",
		"pool":         "messages and ids",
		"flag":         "reads flags",
		"net/http":     "sends requests",
	},
	"chatctx/record": {
		"internal/branchstore": "histories in a transaction",
		"chatctx/kv":           "figures of space",
		"branch":               "histories",
		"internal/jsontree":    "canonical arguments",
		"pool":                 "messages and ids",
	},
	"internal/base": {
		"github.com/google/uuid":       "reads ids",
		"internal/stored":              "bytes of records",
		"internal/poolstore":           "messages in a transaction",
		"internal/branchstore":         "histories in a transaction",
		"chatctx/record":               "the records",
		"branch":                       "histories",
		"chatctx/kv":                   "reads and writes",
		"pool":                         "messages and ids",
		"github.com/fxamacker/cbor/v2": "encodes records",
		"golang.org/x/sys/unix":        "names a boot",
		"golang.org/x/sys/windows":     "looks for processes",
		"syscall":                      "calls the system",
		"internal/jsontree":            "canonical arguments",
		"internal/engine":              "purposes and roles",
	},
	"internal/grant": {
		"golang.org/x/crypto/argon2": "hashes passphrases",
		"internal/base":              "the open store",
		"internal/branchstore":       "names of addresses",
		"chatctx/kv":                 "reads and writes",
	},
	"internal/view": {
		"internal/engine":        "purposes and roles",
		"internal/stored":        "bytes of records",
		"internal/poolstore":     "messages in a transaction",
		"internal/branchstore":   "histories in a transaction",
		"chatctx/record":         "the records",
		"internal/plural":        "counts in words",
		"internal/jsontree":      "values made whole",
		"branch":                 "histories",
		"internal/base":          "keys and errors",
		"chatctx/kv":             "reads and writes",
		"internal/settings":      "values in force",
		"pool":                   "messages and ids",
		"github.com/google/uuid": "makes ids",
		"internal/fold":          "folds case",
	},
	"internal/find": {
		"internal/poolstore":   "messages in a transaction",
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"internal/charset":     "texts in any encoding",
		"branch":               "histories",
		"internal/index":       "blocks of words",
		"internal/base":        "keys and errors",
		"internal/view":        "references resolved",
		"internal/words":       "cuts into words",
		"chatctx/kv":           "reads and writes",
		"pool":                 "messages and ids",
		"internal/engine":      "purposes and roles",
	},
	"internal/journal": {
		"internal/stored":              "bytes of records",
		"internal/poolstore":           "messages in a transaction",
		"internal/branchstore":         "histories in a transaction",
		"chatctx/record":               "the records",
		"internal/plural":              "counts in words",
		"branch":                       "histories",
		"internal/find":                "searchable texts",
		"internal/base":                "keys and errors",
		"internal/view":                "references resolved",
		"chatctx/kv":                   "reads and writes",
		"internal/settings":            "harmless ones",
		"pool":                         "messages and ids",
		"github.com/fxamacker/cbor/v2": "encodes records",
	},
	"internal/intake": {
		"internal/jsontree":      "JSON in place",
		"internal/stored":        "bytes of records",
		"internal/poolstore":     "messages in a transaction",
		"internal/branchstore":   "histories in a transaction",
		"chatctx/record":         "the records",
		"branch":                 "histories",
		"internal/find":          "searchable texts",
		"internal/journal":       "changes with undo",
		"internal/base":          "keys and errors",
		"internal/view":          "references resolved",
		"chatctx/kv":             "reads and writes",
		"internal/settings":      "values in force",
		"internal/plural":        "counts in words",
		"pool":                   "messages and ids",
		"github.com/google/uuid": "makes ids",
	},
	"internal/toolcall": {
		"internal/poolstore":   "messages in a transaction",
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"branch":               "histories",
		"internal/journal":     "changes with undo",
		"internal/base":        "keys and errors",
		"internal/view":        "references resolved",
		"chatctx/kv":           "reads and writes",
		"pool":                 "messages and ids",
		"internal/jsontree":    "canonical arguments",
	},
	"internal/task": {
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"branch":               "histories",
		"internal/journal":     "changes with undo",
		"internal/base":        "keys and errors",
		"internal/toolcall":    "lives of calls",
		"internal/view":        "references resolved",
		"chatctx/kv":           "reads and writes",
		"pool":                 "messages and ids",
	},
	"internal/care": {
		"internal/stored":      "bytes of records",
		"internal/poolstore":   "messages in a transaction",
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"internal/charset":     "texts in any encoding",
		"internal/plural":      "counts in words",
		"internal/leftover":    "files of killed programs",
		"branch":               "histories",
		"internal/find":        "searchable texts",
		"internal/index":       "blocks of words",
		"internal/intake":      "histories taken in",
		"internal/journal":     "changes with undo",
		"internal/base":        "keys and errors",
		"internal/view":        "references resolved",
		"internal/words":       "cuts into words",
		"chatctx/kv":           "reads and writes",
		"chatctx/kv/boltkv":    "the file engine",
		"chatctx/kv/memkv":     "the memory engine",
		"pool":                 "messages and ids",
		"internal/jsontree":    "texts in JSON",
		"internal/engine":      "purposes and roles",
	},
	"chatctx": {
		"internal/grant":       "proves who decides",
		"internal/poolstore":   "messages in a transaction",
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"branch":               "histories",
		"internal/care":        "keeps the file",
		"internal/find":        "searchable texts",
		"internal/intake":      "histories taken in",
		"internal/journal":     "changes with undo",
		"internal/base":        "keys and errors",
		"internal/task":        "starts, ends tasks",
		"internal/toolcall":    "lives of calls",
		"internal/view":        "references resolved",
		"chatctx/kv":           "reads and writes",
		"internal/settings":    "values in force",
		"pool":                 "messages and ids",
		"internal/jsontree":    "texts in JSON",
	},
	"chatctx/compare": {
		"chatctx/record":    "the records",
		"chatctx":           "the front door",
		"chatctx/cost":      "what replies cost",
		"internal/settings": "values in force",
		"pool":              "messages and ids",
		"github.com/sergi/go-diff/diffmatchpatch": "compares words",
	},
	"adapter": {
		"internal/jsontree":     "JSON in place",
		"internal/charset":      "texts in any encoding",
		"internal/provider/out": "writes JSON bodies",
		"adapter/wire":          "sends and streams",
		"chatctx":               "the front door",
		"internal/settings":     "which there are",
		"pool":                  "messages and ids",
		"net/http":              "sends requests",

		"golang.org/x/image/webp": "decodes pictures",
	},
	"chatctx/approval": {
		"chatctx/record":    "the records",
		"internal/charset":  "texts in any encoding",
		"chatctx":           "the front door",
		"internal/settings": "values in force",
		"pool":              "messages and ids",
		"github.com/modelcontextprotocol/go-sdk/mcp":     "speaks to servers",
		"github.com/modelcontextprotocol/go-sdk/jsonrpc": "knows their errors",
		"golang.org/x/sync/semaphore":                    "bounds running calls",
		"golang.org/x/sys/unix":                          "holds what starts",
		"golang.org/x/sys/windows":                       "locks and maps",
		"net/http":                                       "sends requests",
		"os/exec":                                        "starts programs",
		"syscall":                                        "calls the system",
		"unsafe":                                         "calls the system",
		"internal/jsontree":                              "reads arguments exactly",
		"github.com/santhosh-tekuri/jsonschema/v6":       "checks arguments",
		"github.com/santhosh-tekuri/jsonschema/v6/kind":  "tells faults apart",
		"golang.org/x/text/language":                     "words of faults",
		"golang.org/x/text/message":                      "words of faults",
		"golang.org/x/text/unicode/norm":                 "one normal form",
		"mvdan.cc/sh/v3/syntax":                          "reads shell texts",
		"internal/base":                                  "the open store",
		"internal/toolcall":                              "lives of calls",
		"internal/view":                                  "references resolved",
	},
	"chatctx/exchange/internal/exchangetest": {
		"chatctx/record":    "the records",
		"chatctx":           "the front door",
		"chatctx/kv/kvtest": "each change runs twice",
		"chatctx/kv/memkv":  "the memory engine",
		"pool":              "messages and ids",
	},
	"chatctx/exchange/internal/show": {
		"chatctx": "the front door",
		"pool":    "messages and ids",
	},
	"internal/tokens": {
		"internal/poolstore":                          "messages in a transaction",
		"chatctx/record":                              "the records",
		"github.com/pkoukk/tiktoken-go":               "encodings, and long words",
		"github.com/pkoukk/tiktoken-go-loader":        "vocabularies for the library",
		"github.com/pkoukk/tiktoken-go-loader/assets": "vocabularies",
		"chatctx": "the front door",
		"pool":    "messages and ids",
	},
	"chatctx/cost": {
		"chatctx/record":  "the records",
		"chatctx":         "the front door",
		"internal/tokens": "names of models",
		"pool":            "messages and ids",
		"internal/base":   "the open store",
		"internal/view":   "references resolved",
	},
	"adapter/adaptertest": {
		"chatctx/record":             "the records",
		"adapter":                    "requests and replies",
		"internal/provider/wiretest": "judges bodies",
		"chatctx":                    "the front door",
		"internal/testkit":           "rounds and seeds",
		"pool":                       "messages and ids",
		"flag":                       "reads flags",
		"net/http":                   "sends requests",
	},
	"internal/provider/anthropic": {
		"internal/jsontree":         "JSON in place",
		"internal/provider/replies": "reads replies",
		"internal/provider/bodies":  "builds bodies",
		"internal/provider/binding": "ties thinking to requests",
		"adapter":                   "requests and replies",
		"internal/provider/out":     "writes JSON bodies",
		"adapter/wire":              "sends and streams",
		"chatctx":                   "the front door",
		"pool":                      "messages and ids",
		"net/http":                  "sends requests",
	},
	"internal/provider/gemini": {
		"internal/jsontree":         "JSON in place",
		"internal/provider/replies": "reads replies",
		"internal/provider/bodies":  "builds bodies",
		"adapter":                   "requests and replies",
		"internal/provider/out":     "writes JSON bodies",
		"adapter/wire":              "sends and streams",
		"chatctx":                   "the front door",
		"pool":                      "messages and ids",
		"net/http":                  "sends requests",
	},
	"internal/provider/ollama": {
		"internal/jsontree":        "JSON in place",
		"internal/provider/bodies": "builds bodies",
		"adapter":                  "requests and replies",
		"internal/provider/out":    "writes JSON bodies",
		"adapter/wire":             "sends and streams",
		"chatctx":                  "the front door",
		"pool":                     "messages and ids",
		"net":                      "opens sockets",
		"net/http":                 "sends requests",
	},
	"internal/provider/openai": {
		"internal/jsontree":         "JSON in place",
		"internal/provider/replies": "reads replies",
		"internal/provider/bodies":  "builds bodies",
		"adapter":                   "requests and replies",
		"internal/provider/out":     "writes JSON bodies",
		"adapter/wire":              "sends and streams",
		"chatctx":                   "the front door",
		"pool":                      "messages and ids",
		"net/http":                  "sends requests",
	},
	"chatctx/exchange": {
		"internal/poolstore":                 "messages in a transaction",
		"internal/branchstore":               "histories in a transaction",
		"chatctx/record":                     "the records",
		"internal/codec":                     "JSON of structs",
		"internal/leftover":                  "files of killed programs",
		"branch":                             "histories",
		"chatctx":                            "the front door",
		"chatctx/exchange/internal/show":     "texts for people",
		"chatctx/kv":                         "reads and writes",
		"internal/settings":                  "values in force",
		"internal/input":                     "reads pipes",
		"internal/plural":                    "counts in words",
		"internal/sqlite":                    "reads SQLite files",
		"pool":                               "messages and ids",
		"github.com/google/uuid":             "makes ids",
		"github.com/klauspost/compress/zstd": "unpacks archives",
		"github.com/vmihailenco/msgpack/v5":  "reads MessagePack",
		"github.com/vmihailenco/msgpack/v5/msgpcode": "tells its types apart",
		"golang.org/x/text/encoding/unicode":         "reads UTF-16",
		"golang.org/x/text/transform":                "reads UTF-16",
		"internal/base":                              "the open store",
		"internal/care":                              "keeps the file",
		"internal/intake":                            "histories taken in",
		"internal/view":                              "references resolved",
	},
	"enhancer": {
		"chatctx":      "the front door",
		"chatctx/cost": "prices of models",
		"pool":         "messages and ids",
	},
	"internal/provider/responses": {
		"internal/jsontree":         "JSON in place",
		"internal/provider/replies": "reads replies",
		"internal/provider/bodies":  "builds bodies",
		"adapter":                   "requests and replies",
		"internal/provider/out":     "writes JSON bodies",
		"internal/provider/openai":  "speaks Chat Completions",
		"adapter/wire":              "sends and streams",
		"chatctx":                   "the front door",
		"pool":                      "messages and ids",
	},
	"chatctx/exchange/html": {
		"chatctx/record":                         "the records",
		"internal/plural":                        "counts in words",
		"chatctx":                                "the front door",
		"chatctx/exchange":                       "reads other formats",
		"chatctx/exchange/internal/show":         "texts for people",
		"pool":                                   "messages and ids",
		"github.com/yuin/goldmark":               "renders Markdown",
		"github.com/yuin/goldmark/ast":           "walks its tree",
		"github.com/yuin/goldmark/extension":     "tables and tasks",
		"github.com/yuin/goldmark/renderer":      "renders its nodes",
		"github.com/yuin/goldmark/renderer/html": "renders to HTML",
		"github.com/yuin/goldmark/util":          "orders its renderers",
	},
	"adapter/anthropic": {
		"internal/provider/anthropic": "registers it",
	},
	"adapter/gemini": {
		"internal/provider/gemini": "registers it",
	},
	"adapter/ollama": {
		"internal/provider/ollama": "registers it",
	},
	"adapter/openai": {
		"internal/provider/openai": "registers it",
	},
	"adapter/responses": {
		"internal/provider/responses": "registers it",
	},
	"adapter/all": {
		"adapter/anthropic": "speaks Anthropic",
		"adapter/gemini":    "speaks Gemini",
		"adapter/ollama":    "speaks Ollama",
		"adapter/openai":    "speaks Chat Completions",
		"adapter/responses": "speaks Responses",
	},
	"chatctx/exchange/all": {
		"chatctx/exchange/html": "writes the page",
	},
	"chatctx/turn": {
		"internal/provider/binding":    "ties thinking to requests",
		"internal/window":              "fits the window",
		"internal/branchstore":         "histories in a transaction",
		"chatctx/record":               "the records",
		"internal/provider/openai":     "makes vectors",
		"adapter":                      "requests and replies",
		"adapter/all":                  "every provider",
		"adapter/wire":                 "sends and streams",
		"branch":                       "histories",
		"chatctx":                      "the front door",
		"chatctx/cost":                 "prices of models",
		"internal/settings":            "values in force",
		"enhancer":                     "fits the window",
		"internal/tokens":              "counts a question",
		"internal/jsontree":            "canonical arguments",
		"pool":                         "messages and ids",
		"github.com/fxamacker/cbor/v2": "encodes records",
		"net/http":                     "sends requests",
		"internal/base":                "the open store",
		"internal/toolcall":            "lives of calls",
		"internal/view":                "references resolved",
	},
	"internal/contract": {
		"internal/window":   "fits the window",
		"chatctx/record":    "the records",
		"chatctx/approval":  "what a call runs",
		"chatctx/cost":      "what answers cost",
		"adapter":           "requests and replies",
		"adapter/wire":      "sends and streams",
		"chatctx":           "the front door",
		"chatctx/kv":        "reads and writes",
		"internal/settings": "which there are",
		"chatctx/turn":      "talks to providers",
		"enhancer":          "fits the window",
		"internal/jsontree": "names that stand twice",
		"pool":              "messages and ids",
	},
	"internal/screen": {
		"chatctx/record":         "the records",
		"internal/plural":        "counts in words",
		"chatctx":                "the front door",
		"chatctx/compare":        "how answers differ",
		"pool":                   "messages and ids",
		"github.com/rivo/uniseg": "cuts by Unicode",
		"github.com/sergi/go-diff/diffmatchpatch": "compares lines",
		"github.com/yuin/goldmark":                "reads Markdown",
		"github.com/yuin/goldmark/ast":            "walks its tree",
		"github.com/yuin/goldmark/extension":      "tables and tasks",
		"github.com/yuin/goldmark/extension/ast":  "tables and tasks",
		"github.com/yuin/goldmark/parser":         "reads Markdown",
		"github.com/yuin/goldmark/text":           "reads Markdown",
		"github.com/yuin/goldmark/util":           "resolves entities",
	},
	"subtask": {
		"internal/view":     "references resolved",
		"internal/base":     "keys and errors",
		"internal/window":   "fits the window",
		"chatctx/record":    "the records",
		"chatctx":           "the front door",
		"chatctx/approval":  "decides and runs",
		"internal/settings": "values in force",
		"chatctx/turn":      "talks to providers",
		"enhancer":          "fits the window",
		"pool":              "messages and ids",
	},
	"enhancer/standard": {
		"pool":            "messages and ids",
		"internal/window": "fits the window",
		"internal/tokens": "counts tokens",
		"enhancer":        "steps and their reports",
		"chatctx/record":  "the records",
		"chatctx":         "the front door",
	},
	"internal/window": {
		"pool":                 "messages and ids",
		"internal/poolstore":   "messages in a transaction",
		"internal/plural":      "counts in words",
		"internal/branchstore": "histories in a transaction",
		"internal/tokens":      "counts tokens",
		"enhancer":             "steps and their reports",
		"internal/settings":    "values in force",
		"chatctx/record":       "the records",
		"chatctx/cost":         "prices of models",
		"chatctx":              "the front door",
		"branch":               "histories",
		"internal/base":        "the open store",
	},
	"chatctx/settings": {
		"internal/settings": "values in force",
	},
	"enhancer/tokens": {
		"pool":                                 "messages and ids",
		"internal/tokens":                      "counts tokens",
		"github.com/pkoukk/tiktoken-go-loader": "vocabularies",
		"github.com/pkoukk/tiktoken-go":        "the library's loader",
	},
	"internal/provider/binding": {
		"pool":    "messages and ids",
		"adapter": "requests and replies",
	},
	"internal/provider/bodies": {
		"internal/jsontree": "JSON in place",
		"chatctx":           "the front door",
		"adapter":           "requests and replies",
	},
	"internal/provider/replies": {},
	"internal/ui": {
		"internal/plural":                 "counts in words",
		"internal/window":                 "budgets of requests",
		"chatctx/record":                  "the records",
		"internal/leftover":               "files of killed programs",
		"adapter":                         "why nobody is asked",
		"adapter/wire":                    "why nobody answered",
		"branch":                          "histories",
		"chatctx":                         "the front door",
		"chatctx/approval":                "which rules fit",
		"chatctx/compare":                 "how answers differ",
		"chatctx/cost":                    "what answers cost",
		"internal/settings":               "values in force",
		"chatctx/turn":                    "talks to providers",
		"internal/screen":                 "safe text, trees",
		"pool":                            "messages and ids",
		"charm.land/bubbletea/v2":         "draws, takes keys",
		"github.com/charmbracelet/x/ansi": "measures text",
		"github.com/rivo/uniseg":          "cuts by Unicode",
		"golang.org/x/text/unicode/norm":  "one normal form",
		"os/exec":                         "the editor's type",
		"internal/base":                   "the open store",
		"internal/toolcall":               "lives of calls",
		"internal/view":                   "references resolved",
	},
	"internal/quote": {
		"chatctx/secrets": "leaves keys out",
	},
	"internal/machine": {
		"chatctx":          "the store",
		"chatctx/exchange": "reads their files",
	},
	"internal/operation": {
		"internal/gate":              "agents and their settings",
		"adapter":                    "no model is named",
		"chatctx/secrets":            "keys by their shapes",
		"internal/find":              "makes the index anew",
		"internal/quote":             "frames for models",
		"internal/words":             "finds passages",
		"branch":                     "a branch's figures",
		"internal/branchstore":       "sessions of a branch",
		"internal/charset":           "artifacts as text",
		"internal/charset/eastasian": "artifacts in these",
		"internal/window":            "compacts, prunes, resumes",
		"internal/plural":            "counts in words",
		"internal/poolstore":         "messages in a transaction",
		"chatctx/record":             "the records",
		"internal/codec":             "JSON of structs",
		"adapter/wire":               "quotes a text",
		"chatctx/compare":            "how answers differ",
		"chatctx/cost":               "sums up costs",
		"enhancer":                   "the window's size",
		"internal/tokens":            "previews of messages",
		"chatctx":                    "the front door",
		"chatctx/approval":           "runs tools",
		"chatctx/exchange":           "writes other formats",
		"internal/settings":          "which are harmless",
		"chatctx/kv":                 "stores on a server",
		"io/fs":                      "a user is missing",
		"chatctx/turn":               "talks to providers",
		"internal/contract":          "the JSON promised",
		"internal/jsontree":          "arguments, names twice",
		"pool":                       "messages and ids",
		"subtask":                    "runs child conversations",
		"github.com/google/uuid":     "makes ids",
		"net/http":                   "the type of bytes",
		"internal/base":              "the open store",
		"internal/care":              "check, sizes, leftovers",
		"internal/journal":           "changes with undo",
		"internal/toolcall":          "lives of calls",
		"internal/view":              "references resolved",
		"internal/grant":             "tokens of a store",
		"internal/engine":            "purposes and roles",
	},
	"internal/mcpserver": {
		"chatctx":            "the front door",
		"internal/codec":     "JSON of structs",
		"internal/operation": "the table of operations",
		"internal/quote":     "frames for models",
		"github.com/modelcontextprotocol/go-sdk/jsonrpc": "counts requests",
		"github.com/modelcontextprotocol/go-sdk/mcp":     "speaks to agents",
	},
	"internal/operation/toy": {
		"internal/contract":  "the JSON promised",
		"internal/operation": "the table of operations",
	},
	"chatctx/serve": {
		"internal/branchstore": "histories in a transaction",
		"chatctx/record":       "the records",
		"internal/codec":       "JSON of structs",
		"internal/plural":      "lists of words",
		"chatctx":              "the front door",
		"chatctx/approval":     "runs tools",
		"chatctx/compare":      "kinds of edits",
		"chatctx/exchange":     "reads other formats",
		"chatctx/turn":         "talks to providers",
		"internal/contract":    "the JSON promised",
		"internal/jsontree":    "arguments, names twice",
		"internal/leftover":    "uploads left behind",
		"internal/operation":   "the table of operations",
		"pool":                 "messages and ids",
		"net":                  "opens sockets",
		"net/http":             "answers requests",
		"internal/base":        "the open store",
		"internal/grant":       "tokens of a store",
	},
	"chatctx/serve/page": {},
	"internal/gate": {
		"os/exec":               "finds the program",
		"internal/toolcall":     "lives of calls",
		"internal/base":         "keys and errors",
		"chatctx/record":        "the records",
		"pool":                  "messages and ids",
		"golang.org/x/sys/unix": "looks for the agent",
	},
	"internal/cli": {
		"internal/machine":                "finds other programs",
		"internal/grant":                  "proves who decides",
		"internal/mcpserver":              "answers agents",
		"internal/gate":                   "hooks of other agents",
		"internal/window":                 "fits the window",
		"internal/poolstore":              "messages in a transaction",
		"internal/branchstore":            "histories in a transaction",
		"chatctx/record":                  "the records",
		"internal/codec":                  "JSON of structs",
		"internal/firstgc":                "no early collection",
		"adapter":                         "requests and replies",
		"adapter/wire":                    "sends and streams",
		"branch":                          "histories",
		"chatctx":                         "the front door",
		"chatctx/approval":                "decides and runs",
		"chatctx/compare":                 "how answers differ",
		"chatctx/cost":                    "sums up costs",
		"chatctx/exchange":                "reads other formats",
		"chatctx/exchange/all":            "all its formats",
		"chatctx/kv":                      "tells engines apart",
		"chatctx/kv/pgkv":                 "opens postgres://",
		"chatctx/serve":                   "answers other programs",
		"internal/operation":              "the table of operations",
		"internal/plural":                 "lists of words",
		"chatctx/serve/page":              "the page's files",
		"chatctx/turn":                    "talks to providers",
		"internal/settings":               "values in force",
		"enhancer":                        "fits the window",
		"internal/tokens":                 "counts tokens",
		"internal/contract":               "the JSON promised",
		"internal/jsontree":               "arguments, names twice",
		"internal/input":                  "reads pipes",
		"internal/leftover":               "files left behind",
		"internal/nolink":                 "follows no link",
		"internal/screen":                 "safe text, trees",
		"internal/ui":                     "the full screen",
		"internal/watch":                  "watches folders",
		"pool":                            "messages and ids",
		"subtask":                         "runs child conversations",
		"github.com/google/uuid":          "makes ids",
		"github.com/rivo/uniseg":          "cuts by Unicode",
		"github.com/urfave/cli/v2":        "reads command lines",
		"flag":                            "tells help apart",
		"golang.org/x/sys/windows":        "knows the console",
		"golang.org/x/term":               "knows the terminal",
		"net":                             "opens sockets",
		"os/exec":                         "starts programs",
		"syscall":                         "calls the system",
		"github.com/charmbracelet/x/ansi": "wraps coloured lines",
		"internal/base":                   "the open store",
		"internal/care":                   "keeps the file",
		"internal/journal":                "changes with undo",
		"internal/toolcall":               "lives of calls",
		"internal/view":                   "references resolved",
		"internal/engine":                 "purposes and roles",
	},
	"internal/cluster": {
		"chatctx/record":    "the records",
		"chatctx":           "the front door",
		"chatctx/kv":        "names unknown outcomes",
		"chatctx/kv/pgkv":   "opens postgres://",
		"flag":              "reads flags",
		"internal/pgtest":   "finds the server",
		"net":               "opens sockets",
		"net/http":          "asks Patroni",
		"os/exec":           "starts programs",
		"pool":              "messages and ids",
		"syscall":           "calls the system",
		"internal/base":     "the open store",
		"internal/toolcall": "lives of calls",
	},
	"cmd": {
		"enhancer/tokens": "counts tokens",
		"internal/cli":    "is the program",
	},
	"cmd/chatctx": {
		"cmd": "is the program",
	},
}

// matters reports whether the table has to name an import, and how it does.
func matters(imp string) (string, bool) {
	if in, ok := strings.CutPrefix(imp, module); ok {
		return in, true
	}
	first, _, _ := strings.Cut(imp, "/")
	return imp, strings.Contains(first, ".") || slices.Contains(guarded, imp)
}

// unlisted gives what is wrong with the imports of a file in a room.
func unlisted(room string, imports []string) (wrong []string) {
	may, ok := rooms[room]
	if !ok {
		return []string{fmt.Sprintf("the package %s is not in the table: what may it import, and why?", room)}
	}
	for _, imp := range imports {
		if name, ok := matters(imp); ok && may[name] == "" {
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which its line in the table does not have", room, name))
		}
	}
	return wrong
}

// TestRooms reads the imports of all files; it does not ask the go command, whose cache would hide a change.
func TestRooms(t *testing.T) {
	used := map[string]bool{}
	files := importsOf(t)
	for file, imports := range files {
		room := path.Dir(file)
		if room == "." {
			continue
		}
		used[room] = true
		for _, wrong := range unlisted(room, imports) {
			t.Errorf("%s: %s", file, wrong)
		}
		for _, imp := range imports {
			name, _ := matters(imp)
			used[room+" "+name] = true
		}
	}
	if len(files) < 200 {
		t.Errorf("read only %d files: the test looks in the wrong place", len(files))
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		if !used[room] {
			t.Errorf("the table has the room %s, which is gone", room)
		}
		for imp, why := range rooms[room] {
			if !used[room+" "+imp] {
				t.Errorf("the table lets %s import %s (%s), which it does not", room, imp, why)
			}
			if n := len(strings.Fields(why)); n == 0 || n > 4 {
				t.Errorf("%s imports %s: the reason %q has %d words", room, imp, why, n)
			}
		}
	}
}

// TestRoomsRefuse holds that the table is asked: these imports have no line.
func TestRoomsRefuse(t *testing.T) {
	for _, c := range []struct{ room, imp string }{
		{"adapter", module + "chatctx/exchange"}, {"pool", "modernc.org/sqlite"}, {"pool", module + "chatctx/kv"}, {"pool", "go.etcd.io/bbolt/errors"}, {"chatctx/kv/memkv", "go.etcd.io/bbolt"},
		{"chatctx", "net/http"}, {"internal/base", module + "chatctx"}, {"internal/journal", module + "internal/care"}, {"enhancer", "log"}, {"enhancer", module + "internal/window"}, {"nowhere", "fmt"},
	} {
		if len(unlisted(c.room, []string{c.imp})) == 0 {
			t.Errorf("%s may import %s", c.room, c.imp)
		}
	}
	if wrong := unlisted("internal/poolstore", []string{"bytes", module + "chatctx/kv"}); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// nestedModule tells whether a folder is a module of its own, which nobody needs who builds this one.
func nestedModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

// importsOf gives the imports of each Go file that is no test, by its path from the top.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		nested := nestedModule(p) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && p != "."
		if d.IsDir() && nested {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		out[p] = []string{}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			out[p] = append(out[p], imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
