package seal

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// older are calls that newer machines do not have any more.
var older = []uint32{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_UNLINK, unix.SYS_MKDIR, unix.SYS_SYMLINK, unix.SYS_LINK, unix.SYS_RENAME, unix.SYS_RENAMEAT,
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_FORK, unix.SYS_VFORK,
}
