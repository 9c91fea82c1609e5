// Command probe is what pods of tests run: it listens, and tries who listens.
//
//	probe serve tcp:8080 udp:53 ...         answers on ports until it is stopped
//	probe try tcp:10.0.0.1:8080 udp:...     tries all at once, prints a line per
//	                                        address: "open" or "closed", and it
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// patience is for a name that is looked up and for a packet that is sent
	// again after a second.
	patience = 1500 * time.Millisecond

	greeting = "berth probe\n"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: probe serve|try NETWORK:ADDRESS...")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2:])
	case "try":
		try(os.Args[2:])
	default:
		err = fmt.Errorf("there is no %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// serve greets on each port; it returns when one of them fails.
func serve(ports []string) error {
	failed := make(chan error)
	for _, each := range ports {
		network, port, _ := strings.Cut(each, ":")
		switch network {
		case "udp":
			conn, err := new(net.ListenConfig).ListenPacket(context.Background(), network, ":"+port)
			if err != nil {
				return err
			}
			go func() { failed <- echo(conn) }()
		default:
			listener, err := net.Listen(network, ":"+port)
			if err != nil {
				return err
			}
			go func() { failed <- greet(listener) }()
		}
	}
	return <-failed
}

func greet(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_, _ = io.WriteString(conn, greeting)
		_ = conn.Close()
	}
}

func echo(conn net.PacketConn) error {
	buffer := make([]byte, 512)
	for {
		_, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return err
		}
		_, _ = conn.WriteTo([]byte(greeting), from)
	}
}

func try(addresses []string) {
	results := make([]string, len(addresses))
	var group sync.WaitGroup
	for i, each := range addresses {
		group.Go(func() {
			network, address, _ := strings.Cut(each, ":")
			results[i] = "closed"
			if answers(network, address) {
				results[i] = "open"
			}
		})
	}
	group.Wait()
	for i, each := range addresses {
		fmt.Println(results[i], each)
	}
}

// answers tells whether a greeting comes back.
func answers(network, address string) bool {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), network, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if network == "udp" {
		_, _ = io.WriteString(conn, greeting)
	}
	got := make([]byte, len(greeting))
	_, err = io.ReadFull(conn, got)
	return err == nil && string(got) == greeting
}
