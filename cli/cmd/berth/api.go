package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
)

func (c *cli) apiCommand() *cobra.Command {
	var method, data string
	var asIs bool
	cmd := &cobra.Command{
		Use: "api PATH", Short: "Call the API and print the answer",
		Long: `Sends one request with the context's credentials and prints the answer. The control
plane serves the API reference at /reference.`,
		Args: command.Exactly("PATH"),
	}
	cmd.Flags().StringVarP(&method, "method", "X", "", "method (default: GET, or POST with --data)")
	cmd.Flags().BoolVar(&asIs, "raw", false, "print the answer byte for byte; it can control your terminal")
	cmd.Flags().StringVarP(&data, "data", "d", "", "body: JSON, @FILE, or - for stdin")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		body, err := c.readData(data)
		if err != nil {
			return err
		}
		if method == "" {
			method = "GET"
			if data != "" {
				method = "POST"
			}
		}
		resp, err := client.Raw(ctx, strings.ToUpper(method), args[0], body)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if w, ok := command.Raw(c.Out).(io.Writer); ok && asIs {
			_, err := io.Copy(w, resp.Body)
			return err
		}
		if !strings.Contains(resp.Header.Get("Content-Type"), "json") {
			_, err := io.Copy(c.Out, resp.Body) // events too, as they come
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		o, err := c.Format()
		if err != nil {
			return err
		}
		return output.Program(c.Out, o, json.RawMessage(answer))
	})
	return cmd
}

func (c *cli) readData(data string) ([]byte, error) {
	switch {
	case data == "-":
		return io.ReadAll(c.In)
	case strings.HasPrefix(data, "@"):
		return os.ReadFile(data[1:])
	}
	return bytes.TrimSpace([]byte(data)), nil
}
