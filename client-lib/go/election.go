// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"context"
)

// Leader is who leads an election.
type Leader struct {
	Host, Data string
	Token      int64
}

// Leader returns who leads now, on whichever host; nil: nobody.
func (c *Client) Leader(ctx context.Context, name string) (*Leader, error) {
	answer, err := c.ask(ctx, "LEADER", name)
	fields, isMap := answer.(map[string]any)
	if err != nil || !isMap {
		return nil, err
	}
	return leaderOf(fields["host"], fields["data"], fields["token"]), nil
}

// leaderOf returns nil for the token 0.
func leaderOf(host, data, token any) *Leader {
	found := &Leader{}
	found.Host, _ = host.(string)
	found.Data, _ = data.(string)
	if found.Token, _ = token.(int64); found.Token == 0 {
		return nil
	}
	return found
}

// Observe calls a function with the present leader, and then with each new one, until the context ends, whose error it
// then returns, or the function returns an error. nil: nobody leads. Of changes that come while the function runs,
// only the last is told. If the broker ends it goes on with the next one, and returns ErrNotAvailable if there is none
// for as long as the patience.
func (c *Client) Observe(ctx context.Context, name string, changed func(*Leader) error) error {
	what := &request{kind: leadership, names: []string{name}}
	var told *Leader
	isFirst := true
	var enough error
	err := c.try(ctx, what, func(made *conn) error {
		defer made.close()
		o := &observation{news: make(chan struct{}, 1)}
		made.mu.Lock()
		made.event = o.heed
		made.mu.Unlock()
		take, answer := place()
		if err := made.begin(ctx, words{"OBSERVE", name}, take); err != nil {
			return err
		}
		if _, err := made.wait(ctx, answer, c.patience); err != nil {
			return err
		}
		for {
			leader, err := o.next(ctx, made)
			if err != nil {
				return err
			}
			if !isFirst && same(leader, told) {
				continue
			}
			isFirst, told = false, leader
			if enough = changed(leader); enough != nil {
				return nil
			}
		}
	})
	if enough != nil {
		return enough
	}
	return err
}

func same(a, b *Leader) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// observation is what one connection was told last. The mutex of the connection guards it.
type observation struct {
	news   chan struct{} // says that there is something
	leader *Leader
	wrong  error
}

func (o *observation) heed(event push) {
	switch {
	case len(event) >= 5 && event[0] == "leader":
		o.leader = leaderOf(event[3], event[4], event[2])
	case len(event) >= 4 && event[0] == "unobserved":
		code, _ := event[2].(string)
		sentence, _ := event[3].(string)
		o.wrong = refusal(errorReply(code + " " + sentence))
	case event != nil:
		return
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *observation) next(ctx context.Context, made *conn) (*Leader, error) {
	select {
	case <-o.news:
	case <-ctx.Done():
		return nil, givenUp(ctx, made.what)
	}
	made.mu.Lock()
	defer made.mu.Unlock()
	if o.wrong != nil {
		return nil, o.wrong
	}
	return o.leader, made.why
}
