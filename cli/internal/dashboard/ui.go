// Package dashboard logs this machine's browser in to the dashboard, and lists and ends
// the sessions of browsers.
package dashboard

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/durable"
)

// openTimeout is for programs that hand an address to a browser and end.
const openTimeout = 10 * time.Second

// UI is `berth ui`.
func UI(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ui", Short: "Log your browser in to the dashboard", Args: command.Exactly(),
		Long: `Makes a link that logs one browser in as you, and opens it. The link works once, for 60
seconds. The browser stays logged in for 14 days, or until it was not used for 3 days, and
never longer than the token of your context is good; berth sessions lists and ends that.

Without a browser on this machine, or when the output is no terminal, it prints the link.`,
	}
	onlyPrint := cmd.Flags().Bool("print", false, "print the link instead of opening it")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		resp, err := client.CreateLoginLinkWithResponse(ctx, nil)
		if err != nil {
			return err
		}
		link, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if api.OnThisMachine(link.URL) && !client.OnThisMachine() {
			output.Println(c.Err, "! the link leads to the control plane's own machine; an operator sets BERTH_DASHBOARD_URL to the address of the dashboard")
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *link, output.View[ctlapi.LoginLink]{Name: func(l ctlapi.LoginLink) string { return l.URL }})
		}
		if !*onlyPrint && command.IsTerminal(c.Out) {
			page, err := pageFor(c.Getenv, link.URL)
			if err == nil {
				err = open(ctx, c.Getenv, page)
			}
			if err == nil {
				_, err = output.Println(c.Err, "opened the dashboard in your browser; if you see nothing: berth ui --print")
				return err
			}
			output.Printf(c.Err, "cannot open a browser (%v); open this link in one within 60 seconds:\n", err)
		}
		_, err = output.Println(c.Out, link.URL)
		return err
	})
	return cmd
}

// pageFor writes a page that only its owner can read, and that leads to the link: others
// on this machine see the arguments of the program that opens the browser. The next link
// takes its place; this one is worth nothing after a minute.
func pageFor(getenv func(string) string, link string) (file string, err error) {
	if u, err := url.Parse(link); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("the control plane answered with a link that is none")
	}
	contextFile, err := contexts.Path(getenv)
	if err != nil {
		return "", err
	}
	file = filepath.Join(filepath.Dir(contextFile), "login.html")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	to := html.EscapeString(link)
	page := "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>Berth</title>" +
		"<meta http-equiv=\"refresh\" content=\"0; url=" + to + "\"><a href=\"" + to + "\">Log in to Berth</a>\n"
	return file, durable.WriteFile(file, []byte(page), 0o600)
}

// open shows a file in the browser of this machine.
func open(ctx context.Context, getenv func(string) string, file string) error {
	opener := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		opener = "open"
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return fmt.Errorf("there is no screen here")
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return exec.CommandContext(ctx, opener, (&url.URL{Scheme: "file", Path: file}).String()).Run()
}
