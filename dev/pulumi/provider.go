package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// provider keeps files: lab:index:File has a path, a text and, for tests that stop
// what creates it, the path of a FIFO that its creation waits for. Its id is its
// path, so another path makes another file.
type provider struct {
	pulumirpc.UnimplementedResourceProviderServer
}

func serveProvider() error {
	return serve(func(s *grpc.Server) { pulumirpc.RegisterResourceProviderServer(s, &provider{}) })
}

func (*provider) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "0.0.1"}, nil
}

func (*provider) GetSchema(context.Context, *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: `{"name": "lab", "version": "0.0.1"}`}, nil
}

func (*provider) CheckConfig(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: req.GetNews()}, nil
}

func (*provider) DiffConfig(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return &pulumirpc.DiffResponse{}, nil
}

func (*provider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{SupportsPreview: true}, nil
}

func (*provider) Check(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: req.GetNews()}, nil
}

func text(s *structpb.Struct, name string) string { return s.GetFields()[name].GetStringValue() }

func (*provider) Diff(_ context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	answer := &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE, DeleteBeforeReplace: true}
	for _, name := range []string{"path", "text"} {
		if text(req.GetOlds(), name) == text(req.GetNews(), name) {
			continue
		}
		answer.Changes = pulumirpc.DiffResponse_DIFF_SOME
		answer.Diffs = append(answer.Diffs, name)
		if name == "path" {
			answer.Replaces = append(answer.Replaces, name)
		}
	}
	return answer, nil
}

func (*provider) Create(_ context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	in := req.GetProperties()
	if req.GetPreview() {
		return &pulumirpc.CreateResponse{Properties: in}, nil
	}
	if hold := text(in, "hold"); hold != "" {
		if _, err := os.ReadFile(hold); err != nil { // until its writer closes it
			return nil, err
		}
	}
	return &pulumirpc.CreateResponse{Id: text(in, "path"), Properties: in}, write(in)
}

func (*provider) Update(_ context.Context, req *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	in := req.GetNews()
	if req.GetPreview() {
		return &pulumirpc.UpdateResponse{Properties: in}, nil
	}
	return &pulumirpc.UpdateResponse{Properties: in}, write(in)
}

func write(in *structpb.Struct) error {
	path := text(in, "path")
	if path == "" {
		return errors.New("a file needs a path")
	}
	return os.WriteFile(path, []byte(text(in, "text")), 0o600)
}

// Read finds out how a file is now; without an id there is none any more.
func (*provider) Read(_ context.Context, req *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	raw, err := os.ReadFile(req.GetId())
	if errors.Is(err, fs.ErrNotExist) {
		return &pulumirpc.ReadResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	now, err := structpb.NewStruct(req.GetProperties().AsMap())
	if err != nil {
		return nil, err
	}
	now.Fields["text"] = structpb.NewStringValue(string(raw))
	return &pulumirpc.ReadResponse{Id: req.GetId(), Properties: now, Inputs: req.GetInputs()}, nil
}

func (*provider) Delete(_ context.Context, req *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	err := os.Remove(req.GetId())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("delete: %w", err)
	}
	return &emptypb.Empty{}, nil
}

func (*provider) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
