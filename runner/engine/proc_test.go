package engine_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// childrenOf lists the processes that a process started.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var children []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, parent, ok := processStat(child); ok && parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// alive tells whether a process is there and no zombie.
func alive(pid int) bool {
	state, _, ok := processStat(pid)
	return ok && state != "Z" && state != "X"
}

func processStat(pid int) (state string, parent int, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	_, after, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	if !ok || len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}
