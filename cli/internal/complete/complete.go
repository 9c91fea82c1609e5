// Package complete completes arguments and flags with what the control plane
// has. What an argument is stands in its command's line of use: INSTALL, APP,
// CHANGE. Somebody who presses Tab does not wait: without an answer within a
// moment there are no suggestions.
package complete

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/names"
)

// Timeout is how long the control plane has to answer.
const Timeout = 1200 * time.Millisecond

// Dial makes a client that repeats no call for longer than that.
type Dial func(patience time.Duration) (*api.Client, error)

// Attach gives a command, and all below it, completion of its arguments and
// flags.
func Attach(cmd *cobra.Command, dial Dial) {
	for _, sub := range cmd.Commands() {
		Attach(sub, dial)
	}
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() {
		if words := Words(cmd.Use); !takesFiles(words) {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
				return suggest(cmd, dial, asked{words: at(words, len(args)), args: args, begun: toComplete})
			}
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		word, ok := ofFlags[f.Name]
		if !ok || f.Value.Type() != "string" && f.Value.Type() != "stringSlice" {
			return
		}
		// It fails only for a flag that there is not, or that has one already.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return suggest(cmd, dial, asked{words: []string{word}, args: args, begun: toComplete})
		})
	})
}

// ofFlags are the flags that name something.
var ofFlags = map[string]string{
	"app": "APP", "config": "CONFIG", "customer": "CUSTOMER", "install": "INSTALL", "release": "RELEASE", "to": "RELEASE", "workflow": "WORKFLOW",
}

// Words are what a line of use calls its arguments, by position: words that stand
// for each other are at the same one. The last one repeats when it ends in "...".
func Words(use string) [][]string {
	var words [][]string
	alternative := false
	for i, word := range strings.Fields(use) {
		switch {
		case i == 0 || strings.HasPrefix(word, "-"):
		case word == "|" || word == "or":
			alternative = true
		case word == "[flags]":
		case alternative && len(words) > 0:
			words[len(words)-1] = append(words[len(words)-1], word)
			alternative = false
		default:
			words = append(words, []string{word})
		}
	}
	return words
}

func takesFiles(words [][]string) bool {
	for _, position := range words {
		for _, word := range position {
			switch strings.Trim(word, "[].") {
			case "FOLDER", "DIR", "FILE":
				return true
			}
		}
	}
	return false
}

// at are the words of one position.
func at(words [][]string, i int) []string {
	if i < len(words) {
		return words[i]
	}
	if n := len(words); n > 0 && strings.HasSuffix(words[n-1][0], "...") {
		return words[n-1]
	}
	return nil
}

// asked is what is to be completed.
type asked struct {
	words []string // what may stand there
	args  []string // what stands before it
	begun string   // its first letters
}

func suggest(cmd *cobra.Command, dial Dial, a asked) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	client, err := dial(Timeout)
	if err != nil {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), Timeout)
	defer cancel()
	book := names.Book{Client: client}
	var out []string
	seen := map[string]bool{}
	for _, word := range a.words {
		things, err := find(ctx, book, word, a)
		if err != nil {
			return out, none
		}
		for _, thing := range things {
			for _, name := range append(thing.Names, thing.ID) {
				if !strings.HasPrefix(name, a.begun) || seen[name] || name == thing.ID && !wantsID(thing, a) {
					continue
				}
				seen[name] = true
				out = append(out, cobra.CompletionWithDesc(name, thing.About))
			}
		}
	}
	return out, none | cobra.ShellCompDirectiveKeepOrder
}

// wantsID tells whether an id is a suggestion: when it was begun, or when it is all
// that can stand there.
func wantsID(thing names.Thing, a asked) bool {
	return strings.Contains(a.begun, "_") || len(thing.Names) == 0 && len(a.words) == 1
}

func find(ctx context.Context, book names.Book, word string, a asked) ([]names.Thing, error) {
	word = strings.Trim(word, "[].")
	install, part, _ := strings.Cut(word, "[/")
	if begun, _, inside := strings.Cut(a.begun, "/"); inside && install == "INSTALL" && part != "" {
		return book.Parts(ctx, begun, begun+"/")
	}
	switch install {
	case "INSTALL":
		return book.All(ctx, names.Install)
	case "APP":
		return book.All(ctx, names.App)
	case "CUSTOMER":
		return book.All(ctx, names.Customer)
	case "RUNNER":
		return book.All(ctx, names.Runner)
	case "CHANGE":
		return book.Waiting(ctx)
	case "WORKFLOW":
		return book.Newest(ctx, names.Workflow)
	case "RUN":
		return book.Newest(ctx, names.Run)
	case "BUILD":
		return book.Newest(ctx, names.Build)
	case "RELEASE":
		return book.Versions(ctx, names.Release, first(a.args))
	case "CONFIG":
		return book.Versions(ctx, names.Config, first(a.args))
	case "COMPONENT":
		if len(a.args) > 0 {
			install, _, _ := strings.Cut(a.args[0], "/")
			return book.Parts(ctx, install, "")
		}
	case "ACTION":
		if len(a.args) > 0 {
			return book.Actions(ctx, a.args[0])
		}
	}
	return nil, nil
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
