package cli

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
)

// waitsError: the model called tools, and nobody has decided yet.
type waitsError struct{ calls int }

func (e *waitsError) Error() string {
	return fmt.Sprintf("%s for a decision: the answer goes on with send --continue once they have results", waiting(e.calls))
}

func waiting(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return fmt.Sprintf("%d calls wait", n)
}

// classifyTalk gives the exit code of errors of talking to a provider, 0 for another error.
func classifyTalk(err error) (code int, kind string) {
	var provider *wire.Error
	var waits *waitsError
	var budget *enhancer.BudgetError
	var partial *partialError
	switch {
	case errors.As(err, &partial):
		return 0, ""
	case errors.As(err, &waits):
		return exitWaits, "waits"
	case errors.Is(err, chatctx.ErrStopped):
		return exitInterrupted, "interrupted"
	case errors.As(err, &provider):
		return exitProvider, string(provider.Kind)
	case errors.Is(err, adapter.ErrNoModel), errors.Is(err, adapter.ErrSetting), errors.Is(err, enhancer.ErrSetting), errors.Is(err, turn.ErrNoProvider):
		return exitUsage, "usage"
	case errors.As(err, &budget):
		return exitFailed, "too_long"
	case errors.Is(err, turn.ErrRounds):
		return exitPartial, "partial"
	}
	return 0, ""
}

// talkHint says what to type after an error of asking.
func talkHint(err error) error {
	var provider *wire.Error
	if errors.As(err, &provider) && provider.Keyless != "" && (provider.Status == 401 || provider.Status == 403) {
		return &hinted{err, "chatctx config key_env=" + provider.KeyName + " sends it to " + provider.Keyless}
	}
	if errors.As(err, &provider) && provider.Kind == wire.Authentication && provider.Status == 0 {
		return &hinted{err, "put the key into the environment: export " + provider.KeyName + "=…\nor, for a server of your own: chatctx config base_url=http://…"}
	}
	return err
}

// retryAfter is how many seconds a provider asks to wait, 0 where it does not say.
func retryAfter(err error) float64 {
	var provider *wire.Error
	if errors.As(err, &provider) {
		return provider.RetryAfter.Seconds()
	}
	return 0
}
