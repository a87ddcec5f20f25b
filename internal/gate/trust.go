package gate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Trust is what Codex says of a hook: it skips one that is not trusted, without a word.
type Trust struct {
	Key     string `json:"key"`
	Event   string `json:"eventName"`
	Command string `json:"command"`
	Hash    string `json:"currentHash"`
	Status  string `json:"trustStatus"`
	Enabled bool   `json:"enabled"`
}

// Holds reports whether the hook is run.
func (t *Trust) Holds() bool { return t.Status == "trusted" && t.Enabled }

// codexServer is a codex app-server, which is asked in JSON-RPC.
type codexServer struct {
	in   io.WriteCloser
	out  *bufio.Scanner
	last int
}

// trustTime bounds how long Codex is asked.
const trustTime = 20 * time.Second

// asCodex starts Codex, has it asked, and ends it.
func asCodex(ctx context.Context, ask func(*codexServer) error) error {
	ctx, cancel := context.WithTimeout(ctx, trustTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "codex", "app-server")
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	c := &codexServer{in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, 16<<20)
	if err = c.call("initialize", map[string]any{"clientInfo": map[string]any{"name": "chatctx", "version": "1"}}, nil); err == nil {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"initialized"}`+"\n")
	}
	if err == nil {
		err = ask(c)
	}
	_ = in.Close()
	cancel()
	_ = cmd.Wait()
	return err
}

// call sends a request and reads up to its answer.
func (c *codexServer) call(method string, params, result any) error {
	c.last++
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params})
	if err == nil {
		_, err = c.in.Write(append(raw, '\n'))
	}
	if err != nil {
		return err
	}
	for c.out.Scan() {
		var answer struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(c.out.Bytes(), &answer) != nil || answer.ID != c.last || answer.Result == nil && answer.Error == nil {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("codex app-server, %s: %s", method, answer.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
	return fmt.Errorf("codex app-server gave no answer to %s", method)
}

// list returns our hooks.
func (c *codexServer) list(folder string) (ours []Trust, err error) {
	var all struct {
		Data []struct {
			Hooks []Trust `json:"hooks"`
		} `json:"data"`
	}
	err = c.call("hooks/list", map[string]any{"cwds": []string{folder}}, &all)
	for _, place := range all.Data {
		for _, t := range place.Hooks {
			if strings.Contains(t.Command, " gate hook codex ") {
				ours = append(ours, t)
			}
		}
	}
	return ours, err
}

// CodexTrust asks Codex which of our hooks it trusts.
func CodexTrust(ctx context.Context, h Home) (ours []Trust, err error) {
	err = asCodex(ctx, func(c *codexServer) error {
		ours, err = c.list(h.Dir)
		return err
	})
	return ours, err
}

// TrustCodex has Codex trust these hooks as they are now, and returns what it says of them then. A hook that changed meanwhile stays untrusted.
func TrustCodex(ctx context.Context, h Home, hooks []Trust) (now []Trust, err error) {
	err = asCodex(ctx, func(c *codexServer) error {
		edits := []any{}
		for _, t := range hooks {
			edits = append(edits, map[string]any{"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": map[string]any{t.Key: map[string]any{"trusted_hash": t.Hash, "enabled": true}}})
		}
		if err := c.call("config/batchWrite", map[string]any{"edits": edits}, nil); err != nil {
			return err
		}
		now, err = c.list(h.Dir)
		return err
	})
	return now, err
}

// Untrusted returns why Codex does not run all hooks, "" if it does.
func Untrusted(ctx context.Context, h Home) string {
	hooks, err := CodexTrust(ctx, h)
	held := 0
	for _, t := range hooks {
		if t.Holds() {
			held++
		}
	}
	switch {
	case err != nil:
		return "codex does not say whether it trusts the hooks: " + err.Error()
	case held < len(Named("codex").Events):
		return fmt.Sprintf("codex trusts %d of %d hooks and skips the others, so calls run without a decision: run gate install codex again", held, len(Named("codex").Events))
	}
	return ""
}
