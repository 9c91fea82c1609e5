package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type file struct {
	pulumi.CustomResourceState
	Path pulumi.StringOutput `pulumi:"path"`
	Text pulumi.StringOutput `pulumi:"text"`
}

// runProgram makes the files of its config: "files" is an object of names with
// path, text and hold. The config "secret", when there is one, is an output that is
// kept secret, and the text of the file "secret".
func runProgram() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		var files map[string]struct{ Path, Text, Hold string }
		own := config.New(ctx, "")
		own.RequireObject("files", &files)
		paths := pulumi.StringMap{}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f := files[name]
			in := pulumi.Map{"path": pulumi.String(f.Path), "text": pulumi.String(f.Text), "hold": pulumi.String(f.Hold)}
			if name == "secret" {
				in["text"] = own.RequireSecret("secret")
			}
			made := &file{}
			if err := ctx.RegisterResource("lab:index:File", name, in, made); err != nil {
				return err
			}
			paths[name] = made.Path
		}
		ctx.Export("paths", paths)
		ctx.Export("greeting", pulumi.String(os.Getenv("GREETING")))
		if own.Get("secret") != "" {
			ctx.Export("secret", own.RequireSecret("secret"))
		}
		fmt.Println("program has", len(files), "files")
		return nil
	})
}
