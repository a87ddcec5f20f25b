//go:build unix

package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Credential makes a program run as the user postgres where this one is root, whom the server refuses.
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

// HandOver gives a file or folder to the server's user.
func HandOver(path string) error {
	uid, gid, ok := server()
	if !ok {
		return nil
	}
	return os.Chown(path, uid, gid)
}
