// Package dns is the least cluster DNS that workloads get along with: the A
// records of services, of headless services and of their named endpoints, over
// UDP. It forwards nothing: a pod that looks for any other name learns at once
// that there is none, as in an install without a way out.
package dns

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/berth-dev/berth/dev/kube/k8s/watch"
)

const (
	// ttl is short, in seconds, because tests delete services and make them
	// again.
	ttl = 2

	// maxQuery is the size in bytes of the largest query that is read; a
	// question of one name has far less.
	maxQuery = 4096
)

// Main serves until it is asked to stop. args are a program's, name first.
func Main(args []string) int {
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API `file`")
	listen := flags.String("listen", "127.0.0.1:53", "UDP `address` to serve on")
	domain := flags.String("domain", "cluster.local", "the cluster's `domain`")
	_ = flags.Parse(args[1:]) // ExitOnError

	return watch.Main("dns", func(ctx context.Context) error { return run(ctx, *kubeconfig, *listen, *domain) })
}

func run(ctx context.Context, kubeconfig, listen, domain string) error {
	_, factory, err := watch.Connect(kubeconfig)
	if err != nil {
		return err
	}
	zone := Zone{
		Domain:    domain,
		Services:  factory.Core().V1().Services().Lister(),
		Endpoints: factory.Discovery().V1().EndpointSlices().Lister(),
	}
	if err := watch.Start(ctx, factory); err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp4", listen)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = conn.Close() // ends the read below
	}()
	slog.Info("dns serves", "address", listen, "domain", domain)
	return serve(ctx, conn, zone)
}

func serve(ctx context.Context, conn net.PacketConn, zone Zone) error {
	query := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFrom(query)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := reply(zone, query[:n])
		if err != nil {
			slog.Debug("query not answered", "from", from, "err", err)
			continue
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			slog.Warn("answer not sent", "to", from, "err", err)
		}
	}
}

// reply answers one query. A name that exists but has no address of the type
// that was asked for gets an empty answer, which is not "no such name": a
// resolver asks for IPv6 too, and would otherwise give up on both.
func reply(zone Zone, query []byte) ([]byte, error) {
	var q dnsmessage.Message
	if err := q.Unpack(query); err != nil {
		return nil, err
	}
	if q.Response || len(q.Questions) != 1 {
		return nil, fmt.Errorf("want one question, got %d", len(q.Questions))
	}
	question := q.Questions[0]
	a := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: q.ID, Response: true, Authoritative: true,
			RecursionDesired: q.RecursionDesired, RecursionAvailable: true,
		},
		Questions: q.Questions,
	}
	addresses, found := zone.Lookup(question.Name.String())
	if !found {
		a.RCode = dnsmessage.RCodeNameError
	}
	if question.Type == dnsmessage.TypeA {
		for _, address := range addresses {
			a.Answers = append(a.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{
					Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: ttl,
				},
				Body: &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return a.Pack()
}
