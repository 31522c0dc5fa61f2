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
// errorReply.
type parser struct {
	data []byte
}

func (p *parser) feed(data []byte) {
	p.data = append(p.data, data...)
}

// next returns the next value, or errMore.
func (p *parser) next() (any, error) {
	r := reader{data: p.data}
	value, err := r.value(0)
	if err == errMore && len(p.data) > replyBytesMax {
		return nil, noRESP("a reply is longer than %d bytes", replyBytesMax)
	}
	if err != nil {
		return nil, err
	}
	if p.data = p.data[r.at:]; len(p.data) == 0 {
		p.data = nil
	}
	return value, nil
}

func noRESP(format string, values ...any) error { return failed(ErrProtocol, format, values...) }

// reader is the state of one try to read a value.
type reader struct {
	data  []byte
	at    int
	items int
}

func (r *reader) line() (byte, string, error) {
	rest := r.data[r.at:]
	end := bytes.Index(rest, []byte("\r\n"))
	switch {
	case end > lineBytesMax || end < 0 && len(rest) > lineBytesMax:
		return 0, "", noRESP("a line is longer than %d bytes", lineBytesMax)
	case end < 0:
		return 0, "", errMore
	case end == 0:
		return 0, "", noRESP("an empty line is no RESP of lockbrokerd")
	}
	r.at += end + 2
	return rest[0], string(rest[1:end]), nil
}

func (r *reader) value(depth int) (any, error) {
	kind, rest, err := r.line()
	if err != nil {
		return nil, err
	}
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
		count, err := number(rest)
		if err == nil && (count < 0 || count > replyBytesMax) {
			err = noRESP("%.40q is no length", rest)
		}
		if err != nil {
			return nil, err
		}
		if kind == '$' {
			return r.bulk(int(count))
		}
		return r.aggregate(kind, int(count), depth)
	}
	return nil, noRESP("%.40q is no RESP of lockbrokerd", string(kind)+rest)
}

func (r *reader) bulk(count int) (any, error) {
	if len(r.data)-r.at < count+2 {
		return nil, errMore
	}
	text := string(r.data[r.at : r.at+count])
	if string(r.data[r.at+count:r.at+count+2]) != "\r\n" {
		return nil, noRESP("a text is longer than announced")
	}
	r.at += count + 2
	return text, nil
}

func (r *reader) aggregate(kind byte, count, depth int) (any, error) {
	if kind == '%' {
		count *= 2
	}
	if r.items += count; r.items > itemsMax {
		return nil, noRESP("a reply has more than %d items", itemsMax)
	}
	if depth >= depthMax {
		return nil, noRESP("a reply is nested deeper than %d", depthMax)
	}
	list := []any{}
	for len(list) < count {
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	switch kind {
	case '>':
		return push(list), nil
	case '*':
		return list, nil
	}
	pairs := make(map[string]any, count/2)
	for i := 0; i < count; i += 2 {
		key, isText := list[i].(string)
		if !isText {
			return nil, noRESP("the key of a map is no text")
		}
		pairs[key] = list[i+1]
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
