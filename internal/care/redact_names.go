package care

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Redaction beyond messages, prompts and calls: names, tools, rules, what only undo needs, and the store's own records.
//
// branchName redacts a branch's name and updates the index of names.

// branchName redacts a branch's name. The name leads to the branch afterwards as it did before.
func (r *redactor) branchName(t *journal.Txn, b *branch.Branch) error {
	was := b.Name
	if r.text("branch", "", &b.Name); b.Name == was || b.Removed != 0 || r.err != nil {
		return r.err
	}
	if err := branchstore.DeleteName(t.Tx, t.ID, was); err != nil {
		return err
	}
	free, err := branchstore.FreeName(t.Tx, t.ID, b.Name)
	if err != nil {
		return err
	}
	b.Name = free
	return branchstore.PutName(t.Tx, t.ID, b.Name, b.ID)
}

// tags redacts the names of tags.
func (r *redactor) tags(t *journal.Txn) error {
	keys, err := view.KeysWith(t.Tx, base.TagBucket, t.ID[:])
	if err != nil {
		return err
	}
	for _, key := range keys {
		name := string(key[16:])
		if r.text("tag", "", &name); name == string(key[16:]) {
			continue
		}
		value, err := t.Tx.Get(base.TagBucket, key)
		if err != nil {
			return err
		}
		value = bytes.Clone(value)
		free := name
		for n := 2; ; n++ {
			taken, err := t.Tx.Get(base.TagBucket, base.Under(t.ID, []byte(free)...))
			if err != nil {
				return err
			}
			if taken == nil {
				break
			}
			free = fmt.Sprint(name, ".", n)
		}
		if err := cmp.Or(t.Tx.Delete(base.TagBucket, key), t.Tx.Put(base.TagBucket, base.Under(t.ID, []byte(free)...), value)); err != nil {
			return err
		}
	}
	return r.err
}

func (r *redactor) tools(t *journal.Txn) error { return r.toolsOf(t.ID) }

// toolsOf redacts the descriptions of tools, how they are run, and the reasons of rules. The conditions of rules stay: changed, they would allow something
// else.
func (r *redactor) toolsOf(owner pool.ID) error {
	err := eachRecord(r.tx, base.ToolBucket, owner, func(tool *record.Tool) bool {
		r.hit = false
		r.tool(tool)
		return r.hit
	})
	if err != nil {
		return err
	}
	err = eachRecord(r.tx, base.RuleBucket, owner, func(rule *record.Rule) bool {
		r.hit = false
		r.text("rule", "", &rule.Reason)
		r.text("rule", "", &rule.By)
		r.stays("rule", "the rule would match something else", rule.Tool, rule.Mode)
		for _, c := range rule.When {
			r.stays("rule", "the rule would match something else", c.Argument, c.Value)
		}
		return r.hit
	})
	return cmp.Or(err, r.err)
}

func (r *redactor) tool(tool *record.Tool) {
	r.text("tool", "", &tool.Description)
	r.json("tool", "", &tool.Schema)
	for i := range tool.Remotes {
		r.text("tool", "", &tool.Remotes[i].Description)
		r.json("tool", "", &tool.Remotes[i].Schema)
		r.stays("tool", asName, tool.Remotes[i].Name)
	}
	const run = "the tool is run with it: remove the tool"
	r.stays("tool", asName, tool.Name)
	r.stays("tool", run, tool.Command...)
	r.stays("tool", run, tool.URL, tool.Dir)
	for name, value := range tool.Env {
		r.stays("tool", run, name, value)
	}
}

// eachRecord calls fn for the records of a bucket under an owner, and writes those that fn changed.
func eachRecord[T any](tx kv.RwTx, bucket string, owner pool.ID, fn func(*T) bool) error {
	keys, err := view.KeysWith(tx, bucket, owner[:])
	for _, key := range keys {
		if err != nil {
			return err
		}
		v := new(T)
		if _, err = base.GetRecord(tx, bucket, key, v); err == nil && fn(v) {
			err = base.PutRecord(tx, bucket, key, v)
		}
	}
	return err
}

// forgotten lists the secrets in what any redaction drops as a whole: the undo history with prompts that no branch has any more, idempotency keys, and a
// reply under way.
func (r *redactor) forgotten(t *journal.Txn) error {
	err := t.Tx.Scan(branchstore.PromptBucket, kv.Prefix(t.ID[:]), func(key, value []byte) error {
		if text := string(value); !r.prompts[string(key[16:])] {
			r.text("undo", "", &text)
		}
		return r.err
	})
	if err != nil {
		return err
	}
	for bucket, field := range map[string]string{base.OperationBucket: "undo", base.KeyBucket: "key", base.PartialBucket: "reply"} {
		err := t.Tx.Scan(bucket, kv.Prefix(t.ID[:]), func(key, value []byte) error {
			r.within(field, "", key[16:])
			r.within(field, "", value)
			return r.err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// imports lists the secrets in the names under which imported messages are known.
func (r *redactor) imports(t *journal.Txn) error {
	return t.Tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if intake.SourceOf(value, func(id pool.ID) bool { return id == t.ID }) {
			r.within("source", asName, key)
		}
		return r.err
	})
}

// wholeStore redacts what belongs to no context: the store's settings, tools, rules and journal.
func (r *redactor) wholeStore() error {
	r.at.Title = "the store"
	settings := map[string]json.RawMessage{}
	ok, err := base.GetRecord(r.tx, base.MetaBucket, base.MetaSettings, &settings)
	if err != nil {
		return err
	}
	if r.data("settings", settings); ok && r.hit {
		if err := base.PutRecord(r.tx, base.MetaBucket, base.MetaSettings, settings); err != nil {
			return err
		}
	}
	if err := r.toolsOf(pool.ID{}); err != nil {
		return err
	}
	err = eachRecord(r.tx, base.OperationBucket, pool.ID{}, func(op *base.Operation) bool {
		r.hit = false
		for i := range op.Chains {
			r.text("undo", "", &op.Chains[i].Name)
		}
		r.text("undo", "", &op.By)
		old := len(r.found)
		for _, name := range slices.Concat(op.Things...) {
			r.within("undo", "", []byte(name))
		}
		for _, c := range op.Changes {
			r.within("undo", "", c.Key)
			r.within("undo", "", c.Old)
			for _, raw := range c.Fields {
				r.within("undo", "", raw)
			}
		}
		if len(r.found) > old {
			op.Changes, op.Things, op.Expired, r.hit = nil, nil, true, true
		}
		return r.hit
	})
	if err != nil {
		return err
	}
	return r.looseArtifacts()
}

// looseArtifacts drops stored texts to which nothing refers yet.
func (r *redactor) looseArtifacts() error {
	keys, err := view.KeysWith(r.tx, base.LooseBucket, nil)
	for _, key := range keys {
		if err != nil {
			return err
		}
		var data []byte
		kind := ""
		if has, hasErr := poolstore.HasArtifact(r.tx, pool.Hash(key)); !has || hasErr != nil {
			err = hasErr
			continue
		}
		if data, kind, err = poolstore.Artifact(r.tx, pool.Hash(key)); err != nil {
			continue
		}
		if _, changed := r.file(pool.Hash(key), data, kind, ""); changed {
			err = r.tx.Delete(base.LooseBucket, key)
		}
	}
	return cmp.Or(err, r.err)
}

// within looks for secrets in the bytes of a record: in runs of UTF-8 without control characters. It replaces nothing.
func (r *redactor) within(field, left string, raw []byte) {
	for _, text := range strings.FieldsFunc(strings.ToValidUTF8(string(raw), "\x00"), func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }) {
		if len(text) >= 4 {
			r.text(field, left, &text)
		}
	}
}
