package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// language runs programs whose Pulumi.yaml names an executable
// (runtime.options.binary), as the vendor's host for Go does. The protocol is
// pulumirpc.LanguageRuntime.
type language struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine string // address of the engine that started it
}

// serveLanguage serves until its standard input ends. The port is the first line
// of its output; the engine's address is the last argument.
func serveLanguage() error {
	l := &language{engine: os.Args[len(os.Args)-1]}
	return serve(func(s *grpc.Server) { pulumirpc.RegisterLanguageRuntimeServer(s, l) })
}

func serve(register func(*grpc.Server)) error {
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{Init: func(s *grpc.Server) error {
		register(s)
		return nil
	}})
	if err != nil {
		return err
	}
	fmt.Println(handle.Port)
	return <-handle.Done
}

func (l *language) GetRequiredPlugins(context.Context, *pulumirpc.GetRequiredPluginsRequest) (*pulumirpc.GetRequiredPluginsResponse, error) {
	return &pulumirpc.GetRequiredPluginsResponse{}, nil
}

func (l *language) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "3.150.0"}, nil
}

func (l *language) Run(ctx context.Context, req *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	binary, _ := req.GetInfo().GetOptions().AsMap()["binary"].(string)
	if binary == "" {
		return &pulumirpc.RunResponse{Error: "Pulumi.yaml names no runtime.options.binary"}, nil
	}
	config, err := json.Marshal(req.GetConfig())
	if err != nil {
		return nil, err
	}
	secret, err := json.Marshal(req.GetConfigSecretKeys())
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(req.GetInfo().GetRootDirectory(), binary))
	cmd.Dir, cmd.Stdout, cmd.Stderr = req.GetInfo().GetProgramDirectory(), os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(),
		"PULUMI_PROJECT="+req.GetProject(), "PULUMI_STACK="+req.GetStack(), "PULUMI_ORGANIZATION="+req.GetOrganization(),
		"PULUMI_CONFIG="+string(config), "PULUMI_CONFIG_SECRET_KEYS="+string(secret), "PULUMI_DRY_RUN="+strconv.FormatBool(req.GetDryRun()),
		"PULUMI_PARALLEL="+strconv.Itoa(int(req.GetParallel())), "PULUMI_MONITOR="+req.GetMonitorAddress(), "PULUMI_ENGINE="+l.engine)
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return &pulumirpc.RunResponse{Error: "program " + exit.String()}, nil
	case err != nil:
		return &pulumirpc.RunResponse{Error: err.Error()}, nil
	}
	return &pulumirpc.RunResponse{}, nil
}
