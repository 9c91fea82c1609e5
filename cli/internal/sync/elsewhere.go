package sync

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"github.com/berth-dev/berth/cli/internal/hosts"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remote"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// Elsewhere fetches what a folder takes from elsewhere, then what the files
// that it merges in take, until nothing more is asked for. It reads a git
// repository that the map has from there instead. An address that cannot be
// fetched has a result that says why. Elsewhere reports its progress to say.
func Elsewhere(ctx context.Context, root fs.FS, mapped SourceMap, say io.Writer) (map[string]fetch.Result, error) {
	return ElsewhereWith(ctx, root, mapped, FetchOptions{Say: say})
}

// FetchOptions say how files from elsewhere are fetched.
type FetchOptions struct {
	Say   io.Writer
	Known map[string]fetch.Result // what is not fetched again, by address
	// Hosts, when given, ends the wait for a host that says nothing, once for all of
	// its addresses.
	Hosts *hosts.Hosts
	// Lost gives what stands in for an address that cannot be fetched, so that the files
	// around it are read all the same; nil for nothing.
	Lost func(*appconfig.App, fetch.Wanted, fetch.Result) fetch.Result
}

// ElsewhereWith is Elsewhere with options.
func ElsewhereWith(ctx context.Context, root fs.FS, mapped SourceMap, o FetchOptions) (results map[string]fetch.Result, err error) {
	say := o.Say
	fetcher := remote.New(func(line string) { output.Println(say, line) })
	fetcher.Hosts = o.Hosts
	defer func() {
		if closeErr := fetcher.Close(); err == nil {
			err = closeErr
		}
	}()
	results = map[string]fetch.Result{}
	maps.Copy(results, o.Known)
	asked := 0
	for {
		app, _ := appconfig.Load(root, appconfig.LoadOptions{SkipSources: true, Fetched: results})
		wanted := appconfig.Fetches(app)
		var ask []string
		for _, f := range wanted {
			if _, known := results[f.Address]; known {
				continue // another key has it, too
			}
			if asked == fetch.MaxAddresses {
				results[f.Address] = fetch.Result{
					Problem: fmt.Sprintf("is not fetched: the app uses files from more than %d addresses", fetch.MaxAddresses),
					Remedy:  "put files into the folder",
				}
				continue
			}
			asked++
			if result, ok := fromMap(f.Address, mapped, say); ok {
				results[f.Address] = result
				continue
			}
			results[f.Address] = fetch.Result{} // until it is there
			ask = append(ask, f.Address)
		}
		maps.Copy(results, fetcher.Fetch(ctx, ask))
		if o.Lost != nil {
			for _, f := range wanted {
				if result := results[f.Address]; result.Problem != "" {
					results[f.Address] = o.Lost(app, f, result)
				}
			}
		}
		if len(wanted) == 0 || ctx.Err() != nil {
			return results, ctx.Err()
		}
	}
}

// fromMap takes a file of a git repository from where the map sends it.
func fromMap(address string, mapped SourceMap, say io.Writer) (fetch.Result, bool) {
	parsed, err := fetch.ParseAddress(address)
	if err != nil || !parsed.Git {
		return fetch.Result{}, false
	}
	result, from := mapped.file(parsed)
	if from == "" {
		return result, false
	}
	if result.Problem == "" {
		output.Printf(say, "%s comes from %s\n", address, from)
	}
	return result, true
}
