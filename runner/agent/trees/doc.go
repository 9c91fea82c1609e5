// Package trees verifies and unpacks each artifact of the agent's own registry once, for
// all jobs that use it.
//
// What was verified is remembered with what the file system says of each blob: another
// inode, size or time, and it is hashed again. What was unpacked is kept next to the
// registry, and a job gets hard links: a directory of its own, with files that all jobs
// share. So they are root's, nobody may write to them, and only a job whose engine has
// another user than the agent gets them (the caller sees to that): the owner of a file
// could make it writable, and the next job would read what this one wrote.
//
// Nothing here is trusted after a restart. What an earlier agent unpacked, whole or
// half, is deleted at the start, and unpacked again when it is needed.
package trees
