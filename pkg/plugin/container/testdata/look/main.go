// Command look is the program of an image that tries what it must not do.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		return
	}
	fmt.Println("args", strings.Join(os.Args[1:], " "))
	for _, e := range os.Environ() {
		fmt.Println("env", e)
	}
	cwd, _ := syscall.Getwd()
	fmt.Println("cwd", cwd)
	fmt.Println("uid", os.Getuid())
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		key, value, _ := strings.Cut(line, ":\t")
		if name := map[string]string{"CapEff": "caps", "CapBnd": "bounds", "NoNewPrivs": "nnp"}[key]; name != "" {
			fmt.Println(name, value)
		}
	}
	secret := os.Getenv("SECRET")
	parent := fmt.Sprint("/proc/", os.Getppid())
	for shown, path := range map[string]string{
		"/of-image": "/of-image", "/dev/null": "/dev/null", "/proc/self/status": "/proc/self/status", secret: secret, "/climb": "/climb",
		"/proc/1/root/etc/passwd": "/proc/1/root/etc/passwd", "/proc/PARENT/root" + secret: parent + "/root" + secret, "/proc/PARENT/environ": parent + "/environ",
	} {
		_, err := os.ReadFile(path)
		say("read "+shown, err)
	}
	for _, path := range []string{cwd + "/x", "/tmp/x", "/x", "/tools/look", "/dev/x", "/proc/self/oom_score_adj"} {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			f.Close()
		}
		say("write "+path, err)
	}
	for _, path := range strings.Fields(os.Getenv("TRY")) {
		_, err := os.ReadFile(path)
		say("read "+path, err)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			f.Close()
		}
		say("write "+path, err)
	}
	say("mount", syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
	say("remount", syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND, ""))
	say("mknod", syscall.Mknod(cwd+"/device", syscall.S_IFBLK|0o600, 8<<8))
	say("chroot", syscall.Chroot("/tmp"))
	child := exec.Command("/proc/self/exe", "child")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	say("namespace", child.Run())
}

func say(what string, err error) {
	if err != nil {
		fmt.Println(what + ": refused")
		fmt.Fprintln(os.Stderr, what, err)
		return
	}
	fmt.Println(what + ": ok")
}
