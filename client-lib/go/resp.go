// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"bytes"
	"errors"
	"strconv"
)

// RESP3, as far as lockbrokerd speaks it. No I/O.

const (
	lineBytesMax  = 64 << 10
	replyBytesMax = 16 << 20
	itemsMax      = 1 << 20
	depthMax      = 16
)

type words []string

// errorReply is `-CODE sentence`, without the dash.
type errorReply string

// push is what the broker sends without being asked.
type push []any

var errMore = errors.New("the value is not whole yet")

func appendRequest(data []byte, request words) []byte {
	data = append(data, '*')
	data = strconv.AppendInt(data, int64(len(request)), 10)
	data = append(data, "\r\n"...)
	for _, word := range request {
		data = append(data, '$')
		data = strconv.AppendInt(data, int64(len(word)), 10)
		data = append(data, "\r\n"...)
		data = append(data, word...)
		data = append(data, "\r\n"...)
	}
	return data
}

// parser makes values of bytes, in whatever pieces they come: string, int64, nil, []any, map[string]any, push,
// errorReply. It reads no element twice: what a long answer costs does not depend on the pieces.
type parser struct {
	data  []byte
	at    int         // before it are the elements of the next value that were read
	items int         // that those elements announce
	open  []aggregate // those that are not whole yet, each within the one before
}

type aggregate struct {
	kind  byte
	count int
	list  []any
}

func (p *parser) feed(data []byte) {
	p.data = append(p.data, data...)
}

// next returns the next value, or errMore.
func (p *parser) next() (any, error) {
	for {
		value, err := p.element()
		if err == errMore && len(p.data) > replyBytesMax {
			return nil, noRESP("a reply is longer than %d bytes", replyBytesMax)
		}
		if err != nil {
			return nil, err
		}
		if begun, isAggregate := value.(aggregate); isAggregate {
			p.open = append(p.open, begun)
		} else if p.add(value) {
			return value, nil
		}
		for last := len(p.open) - 1; last >= 0 && len(p.open[last].list) == p.open[last].count; last-- {
			value, err := p.open[last].value()
			if err != nil {
				return nil, err
			}
			if p.open = p.open[:last]; p.add(value) {
				return value, nil
			}
		}
	}
}

// add returns whether that is all of the next value.
func (p *parser) add(value any) bool {
	if last := len(p.open) - 1; last >= 0 {
		p.open[last].list = append(p.open[last].list, value)
		return false
	}
	if p.data = p.data[p.at:]; len(p.data) == 0 {
		p.data = nil
	}
	p.at, p.items, p.open = 0, 0, nil
	return true
}

func noRESP(format string, values ...any) error { return failed(ErrProtocol, format, values...) }

// line returns the next one without its end, and where what follows it begins.
func (p *parser) line() (byte, string, int, error) {
	rest := p.data[p.at:]
	end := bytes.Index(rest, []byte("\r\n"))
	switch {
	case end > lineBytesMax || end < 0 && len(rest) > lineBytesMax:
		return 0, "", 0, noRESP("a line is longer than %d bytes", lineBytesMax)
	case end < 0:
		return 0, "", 0, errMore
	case end == 0:
		return 0, "", 0, noRESP("an empty line is no RESP of lockbrokerd")
	}
	return rest[0], string(rest[1:end]), p.at + end + 2, nil
}

// element returns a scalar, or an aggregate that begins; or errMore, and nothing is used.
func (p *parser) element() (any, error) {
	kind, rest, after, err := p.line()
	if err != nil {
		return nil, err
	}
	if kind == '$' && rest != "-1" {
		return p.bulk(rest, after)
	}
	p.at = after
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return errorReply(rest), nil
	case ':':
		return number(rest)
	case '_':
		return nil, nil
	case '$', '*', '%', '>':
		if rest == "-1" && (kind == '$' || kind == '*') {
			return nil, nil
		}
		return p.begin(kind, rest)
	}
	return nil, noRESP("%.40q is no RESP of lockbrokerd", string(kind)+rest)
}

func length(text string) (int, error) {
	count, err := number(text)
	if err == nil && (count < 0 || count > replyBytesMax) {
		err = noRESP("%.40q is no length", text)
	}
	return int(count), err
}

func (p *parser) bulk(announced string, at int) (any, error) {
	count, err := length(announced)
	if err != nil {
		return nil, err
	}
	if len(p.data)-at < count+2 {
		return nil, errMore
	}
	end := at + count
	if string(p.data[end:end+2]) != "\r\n" {
		return nil, noRESP("a text is longer than announced")
	}
	p.at = end + 2
	return string(p.data[at:end]), nil
}

func (p *parser) begin(kind byte, announced string) (any, error) {
	count, err := length(announced)
	if err != nil {
		return nil, err
	}
	if kind == '%' {
		count *= 2
	}
	if p.items += count; p.items > itemsMax {
		return nil, noRESP("a reply has more than %d items", itemsMax)
	}
	if len(p.open) >= depthMax {
		return nil, noRESP("a reply is nested deeper than %d", depthMax)
	}
	return aggregate{kind: kind, count: count, list: []any{}}, nil
}

// value is that of an aggregate that is whole.
func (a aggregate) value() (any, error) {
	switch a.kind {
	case '>':
		return push(a.list), nil
	case '*':
		return a.list, nil
	}
	pairs := make(map[string]any, a.count/2)
	for i := 0; i < a.count; i += 2 {
		key, isText := a.list[i].(string)
		if !isText {
			return nil, noRESP("the key of a map is no text")
		}
		pairs[key] = a.list[i+1]
	}
	return pairs, nil
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, noRESP("%.40q is no number", text)
	}
	return n, nil
}
