//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// nobody is the id of the user and group that Postgres runs as if devstack runs as root and the
// system names no such user.
const nobody = 65534

// account is the user that Postgres runs as.
type account struct {
	uid, gid   int
	credential *syscall.Credential
}

// currentAccount is devstack's own user. For root, which Postgres refuses, it is the user nobody.
func currentAccount() account {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}
	}
	uid, gid := uint32(nobody), uint32(nobody)
	if found, err := user.Lookup("nobody"); err == nil {
		foundUID, badUID := strconv.ParseUint(found.Uid, 10, 32)
		foundGID, badGID := strconv.ParseUint(found.Gid, 10, 32)
		if badUID == nil && badGID == nil {
			uid, gid = uint32(foundUID), uint32(foundGID)
		}
	}
	return account{uid: int(uid), gid: int(gid), credential: &syscall.Credential{Uid: uid, Gid: gid}}
}

// UnreachableError says that Postgres's user cannot enter a directory above the one it needs.
type UnreachableError struct {
	// Path is what Postgres needs, Blocked the directory that it cannot enter, and UID its user.
	Path, Blocked string
	UID           int
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("user %d, as whom Postgres runs because it refuses root, may not enter %s on the way to %s",
		e.UID, e.Blocked, e.Path)
}

// Reachable reports whether Postgres, as the user that Start gives it, could enter the directories
// above path. If not, it returns an *UnreachableError. A directory that does not exist yet counts
// as reachable.
func Reachable(path string) error {
	who := currentAccount()
	if who.credential == nil {
		return nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for dir := filepath.Dir(absolute); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case !mayEnter(info, who):
			return &UnreachableError{Path: absolute, Blocked: dir, UID: who.uid}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func mayEnter(info os.FileInfo, who account) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case int(owner.Uid) == who.uid:
		return mode&0o100 != 0
	case int(owner.Gid) == who.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// ownedDir makes dir, private to the account.
func ownedDir(dir string, who account) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if who.credential == nil {
		return nil
	}
	return os.Chown(dir, who.uid, who.gid)
}

// Credential is the credential of the user that Postgres runs as, for other programs that refuse
// root; nil means devstack's own user.
func Credential() *syscall.Credential { return currentAccount().credential }
