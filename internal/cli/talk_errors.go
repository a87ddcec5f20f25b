package cli

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/adapter/wire"
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
