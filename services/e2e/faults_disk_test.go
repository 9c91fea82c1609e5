package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	diskBytes = 3 << 30
	// slowWrites is what is left of a disk that is slow: writes a second. One
	// fsync takes several.
	slowWrites = 60
)

// disk is a file system of its own, which a test can fill and slow down.
type disk struct {
	dir    string // where it is mounted
	device string // "major:minor"
}

// throttle is where the kernel takes limits for a device from, for all
// processes (control groups, version 1).
const throttle = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"

// mountDisk makes a disk and mounts it at dir. It answers nil and why when this
// machine cannot: that takes root and loop devices.
func mountDisk(t *testing.T, dir string) (*disk, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil, "only root mounts disks"
	}
	image := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(diskBytes), f.Close(), os.MkdirAll(dir, 0o711)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
		return nil, fmt.Sprintf("mkfs.ext4: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "losetup", "-f", "--show", image).CombinedOutput()
	if err != nil {
		return nil, fmt.Sprintf("losetup: %v: %s", err, out)
	}
	loop := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", loop).CombinedOutput(); err != nil {
			t.Errorf("losetup -d %s: %v: %s", loop, err, out)
		}
	})
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "noatime", loop, dir).CombinedOutput(); err != nil {
		return nil, fmt.Sprintf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(loop, &stat); err != nil {
		t.Fatal(err)
	}
	return &disk{dir: dir, device: fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))}, ""
}

// fill leaves nothing of the disk, for as long as it says.
func (d *disk) fill(during time.Duration) error {
	path := filepath.Join(d.dir, ".filled-by-a-test")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(path)) }()
	end := time.Now().Add(during)
	var at int64
	for time.Now().Before(end) { // what others give up meanwhile is taken, too
		var s unix.Statfs_t
		if err := unix.Statfs(d.dir, &s); err != nil {
			return err
		}
		if free := int64(s.Bavail) * s.Bsize; free > 0 {
			if unix.Fallocate(int(f.Fd()), 0, at, free) == nil {
				at += free
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// slow makes all writes to the disk slow for a while, or says why it cannot.
func (d *disk) slow(during time.Duration) error {
	if err := os.WriteFile(throttle, fmt.Appendf(nil, "%s %d", d.device, slowWrites), 0); err != nil {
		return fmt.Errorf("slow down the disk: %w", err)
	}
	time.Sleep(during)
	return os.WriteFile(throttle, fmt.Appendf(nil, "%s 0", d.device), 0)
}
