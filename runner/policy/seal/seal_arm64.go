package seal

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// older are calls that newer machines do not have any more.
var older = []uint32{unix.SYS_RENAMEAT}
