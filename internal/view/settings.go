package view

import (
	"context"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
)

// Ignored returns which settings of a branch, its context and the store are not in force, because this version does not know them, their values are not
// possible, or they do not count in their place. Each error is a *settings.Error of package settings.
func Ignored(ctx context.Context, c *base.Conversation, branchName string) ([]error, error) {
	var out []error
	err := On(ctx, c, branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		places, err := Places(tx, rec, b)
		out = settings.Ignored(places...)
		return err
	}, SettingsKey)
	return out, err
}
