//go:build !linux

package providers

import "io/fs"

func changed(info fs.FileInfo) string { return info.ModTime().String() }
