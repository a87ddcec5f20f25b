package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/enhancer"
)

// unusableHint says what helps against a summary, a digest or a title that is not whole.
const unusableHint = "what helps: another model, chatctx config compact.model=NAME, or a larger limit, chatctx config compact.max_tokens=N"

// byHand is what works without a key.
const byHand = "\nwithout a key, put an answer on the branch yourself: chatctx add assistant TEXT"

// talkHint says what to type after an error of asking.
func talkHint(err error) error {
	var provider *wire.Error
	if errors.As(err, &provider) && provider.Keyless != "" && (provider.Status == 401 || provider.Status == 403) {
		if strings.Contains(os.Getenv("CHATCTX_BASE_URL"), "//"+provider.Keyless) {
			return &hinted{err, "CHATCTX_KEY_ENV=" + provider.KeyName + ", beside CHATCTX_BASE_URL, sends it to " + provider.Keyless}
		}
		return &hinted{err, "chatctx config key_env=" + provider.KeyName + " sends it to " + provider.Keyless}
	}
	if errors.As(err, &provider) && provider.Kind == wire.Authentication && provider.Status == 0 {
		return &hinted{err, "put the key into the environment: export " + provider.KeyName + "=…\nor, for a server of your own: chatctx config base_url=http://…" + byHand}
	}
	if unusable := (*enhancer.UnusableError)(nil); errors.As(err, &unusable) {
		return &hinted{err, unusableHint}
	}
	if errors.Is(err, adapter.ErrNoModel) {
		return &hinted{err, "chatctx config --default model=NAME sets it for all conversations, without --default for this branch; --model NAME is for one command"}
	}
	return err
}

// startHint puts into an error's hint what works where no conversation is there yet to which config could give a setting.
func startHint(err error) error {
	var provider *wire.Error
	switch {
	case errors.Is(err, adapter.ErrNoModel):
		return &hinted{err, "name one: --model NAME, or export CHATCTX_MODEL=NAME for all commands\nonce there is a conversation, chatctx config --default model=NAME keeps one"}
	case errors.As(err, &provider) && provider.Kind == wire.Authentication && provider.Status == 0:
		return &hinted{err, "put the key into the environment: export " + provider.KeyName + "=…\nor, for a server of your own: export CHATCTX_BASE_URL=http://…" + byHand}
	}
	return err
}
