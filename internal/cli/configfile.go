package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// configPath returns the path of the person's config file: that of CHATCTX_CONFIG, else chatctx/config in the folder for a user's configuration. "" means none.
func configPath() string {
	if path, set := os.LookupEnv("CHATCTX_CONFIG"); set {
		return path
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = systemConfigDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "chatctx", "config")
}

// systemConfigDir is the folder for a user's configuration where XDG_CONFIG_HOME names none.
func systemConfigDir() (string, error) {
	if dir := os.Getenv("AppData"); runtime.GOOS == "windows" && dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), err
	}
	return filepath.Join(home, ".config"), err
}

// templateDir returns the folder for files of templates, "" for none.
func templateDir() string {
	path := configPath()
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "templates")
}
