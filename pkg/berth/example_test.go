package berth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A program of its own takes the address and the token from the environment, as
// the command line does.
func Example() {
	client, err := berth.New(berth.FromEnvironment(os.Getenv))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	// Deploys the newest release, and waits for the end or for a decision.
	started, err := client.CreateWorkflowWithResponse(ctx, "acme", &ctlapi.CreateWorkflowParams{}, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy})
	if err != nil {
		log.Fatal(err)
	}
	workflow, err := client.AwaitWorkflow(ctx, started.JSON202.ID, func(w *ctlapi.Workflow) bool {
		return w.State == ctlapi.WorkflowStateWaiting
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(workflow.State)
}

// Lists read further pages while they are ranged over.
func ExampleClient_Installs() {
	client, done := example(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			reply(w, 200, `{"items":[{"name":"acme"},{"name":"globex"}],"next":"p2"}`)
			return
		}
		reply(w, 200, `{"items":[{"name":"hooli"}]}`)
	})
	defer done()

	for install, err := range client.Installs(context.Background(), ctlapi.ListInstallsParams{App: new("hello")}) {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(install.Name)
	}
	// Output:
	// acme
	// globex
	// hooli
}

// What the control plane refuses is a Problem; programs branch on its code.
func ExampleProblem() {
	client, done := example(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 409, `{"title":"Conflict","status":409,"code":"already_exists","detail":"an app with this name already exists"}`)
	})
	defer done()

	_, err := client.CreateAppWithResponse(context.Background(), &ctlapi.CreateAppParams{}, ctlapi.AppRequest{Name: "hello"})
	var problem *berth.Problem
	if errors.As(err, &problem) && problem.Code == "already_exists" {
		fmt.Println(problem.Detail)
	}
	// Output: an app with this name already exists
}

// example makes a client of a service that answers as its handler says.
func example(handler http.HandlerFunc) (client *berth.Client, done func()) {
	server := httptest.NewServer(handler)
	client, err := berth.New(berth.Options{URL: server.URL, Token: "brt_example"})
	if err != nil {
		log.Fatal(err)
	}
	return client, server.Close
}
