package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench has two registries and all who take part.
type bench struct {
	options
	dir         string
	here, there *server
	all         []contestant
	random      *rand.Rand
	pulls       int
}

func (b *bench) close() {
	for _, c := range b.all {
		c.close()
	}
	b.here.close()
	b.there.close()
}

// sample is one turn of a contestant.
type sample struct {
	took   time.Duration
	client time.Duration // processor time of the client, user and system
	server time.Duration // and of the registries
}

const repository = "org_a/image"

// compare lets all contestants do the same in rounds. One round more, the first, warms
// them up and is not counted. What a contestant cannot do at all takes it out.
func (b *bench) compare(ctx context.Context, op string, i image) (map[string][]sample, error) {
	if err := b.fill(ctx, op, i); err != nil {
		return nil, err
	}
	samples := map[string][]sample{}
	left := slices.Clone(b.all)
	for round := 0; round <= b.rounds; round++ {
		b.random.Shuffle(len(left), func(x, y int) { left[x], left[y] = left[y], left[x] })
		for _, c := range slices.Clone(left) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s, err := b.turn(ctx, c, op, i)
			if err != nil && c.command == nil {
				return nil, err
			}
			if err != nil {
				fmt.Printf("%s of %s is left out: %v\n", op, i.dir, err)
				left = slices.DeleteFunc(left, func(other contestant) bool { return other.name == c.name })
				delete(samples, c.name)
				continue
			}
			if round > 0 {
				samples[c.name] = append(samples[c.name], s)
			}
		}
	}
	return samples, nil
}

// fill has the registry here hold the image, where that is what is moved.
func (b *bench) fill(ctx context.Context, op string, i image) error {
	if err := b.here.empty(); err != nil || op == opPush {
		return err
	}
	_, _, err := b.all[0].do(ctx, task{Op: opPush, Dir: i.dir, To: b.here.host, Repository: repository, Digest: i.digest})
	return err
}

// turn measures once, and puts everything back.
func (b *bench) turn(ctx context.Context, c contestant, op string, i image) (sample, error) {
	t := task{Op: op, From: b.here.host, Repository: repository, Digest: i.digest, Dir: i.dir}
	used := []*server{b.here}
	switch op {
	case opPush:
		t.From, t.To = "", b.here.host
		if err := b.here.empty(); err != nil {
			return sample{}, err
		}
	case opPull:
		b.pulls++
		t.Dir = filepath.Join(b.dir, fmt.Sprintf("pull-%d", b.pulls))
		defer os.RemoveAll(t.Dir)
	case opCopy:
		t.To, used = b.there.host, append(used, b.there)
		if err := b.there.empty(); err != nil {
			return sample{}, err
		}
	}
	before := b.used(used)
	took, cpu, err := c.do(ctx, t)
	return sample{took: took, client: cpu, server: b.used(used) - before}, err
}

func (b *bench) used(servers []*server) (sum time.Duration) {
	for _, s := range servers {
		sum += s.used()
	}
	return sum
}
