//go:build unix

package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Credential returns the attributes that run a program as the user postgres when this process is root, because the server refuses to run as root. Otherwise it
// returns nil.
func Credential() *syscall.SysProcAttr {
	uid, gid, ok := server()
	if !ok {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func server() (uid, gid int, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, false
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, true
}

// HandOver makes the server's user the owner of a file or folder. It does nothing unless Credential changes the user.
func HandOver(path string) error {
	uid, gid, ok := server()
	if !ok {
		return nil
	}
	return os.Chown(path, uid, gid)
}
