package boltkv

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// nameable refuses a path that the system does not take for a file's. The store would lie in a stream of another file, where copies lose it, in an
// unexpected folder, or nowhere.
func nameable(path string) error {
	volume := filepath.VolumeName(path)
	rest := path[len(volume):]
	base := filepath.Base(rest)
	switch {
	case strings.Contains(rest, ":"):
		return fmt.Errorf("%w: %s names a stream within another file; a store's name has no colon", kv.ErrNotOurs, path)
	case len(volume) == 2 && volume[1] == ':' && rest != "" && !strings.ContainsRune(`\/`, rune(rest[0])):
		return fmt.Errorf(`%w: %s names no folder of drive %s; write %s\ and the folders before the name`, kv.ErrNotOurs, path, volume, volume)
	case base != "." && base != ".." && base != `\` && !filepath.IsLocal(base):
		return fmt.Errorf("%w: %s is a device; name a file", kv.ErrNotOurs, path)
	}
	return nil
}
