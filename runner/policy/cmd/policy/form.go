package main

import "fmt"

type form struct{ json, v0 bool }

func (form) check(args []string) int { fmt.Println(args); return exitUsage }
func (form) test(args []string) int  { fmt.Println(args); return exitUsage }
