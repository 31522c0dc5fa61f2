// SPDX-License-Identifier: Apache-2.0 OR MIT

package lockbroker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func parse(p *parser, text string) (values []any, err error) {
	p.feed([]byte(text))
	for {
		value, err := p.next()
		if err == errMore {
			return values, nil
		}
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
}

// inPieces returns the values of a text that comes so many bytes at a time.
func inPieces(t *testing.T, text string, size int) (values []any) {
	var p parser
	for rest := text; rest != ""; {
		n := size
		if n > len(rest) {
			n = len(rest)
		}
		more, err := parse(&p, rest[:n])
		if err != nil {
			t.Fatal(err)
		}
		values, rest = append(values, more...), rest[n:]
	}
	return values
}

func TestValuesAreTheSameInWhateverPiecesTheyCome(t *testing.T) {
	text := "+OK\r\n-ERR no: \"a\"\r\n:-42\r\n:0\r\n$5\r\nh\r\nlo\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n" +
		"*2\r\n:1\r\n*1\r\n_\r\n*0\r\n%1\r\n$1\r\na\r\n:1\r\n>2\r\n$4\r\nlost\r\n+x\r\n"
	want := []any{"OK", errorReply("ERR no: \"a\""), int64(-42), int64(0), "h\r\nlo", "", nil, nil, nil,
		[]any{int64(1), []any{nil}}, []any{}, map[string]any{"a": int64(1)}, push{"lost", "x"}}
	for size := 1; size <= len(text); size++ {
		got := inPieces(t, text, size)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("in pieces of %d: %#v", size, got)
		}
	}
}

func TestALongAnswerCostsAsMuchInManyPieces(t *testing.T) {
	text := "*2000\r\n" + strings.Repeat("%2\r\n$4\r\nname\r\n$8\r\norders/1\r\n$7\r\nholders\r\n:1\r\n", 2000)
	cost := func(size int) float64 {
		return testing.AllocsPerRun(1, func() {
			got := inPieces(t, text, size)
			if len(got) != 1 || len(got[0].([]any)) != 2000 {
				t.Fatalf("%d values", len(got))
			}
		})
	}
	whole, pieces := cost(len(text)), cost(512)
	if pieces > 2*whole {
		t.Fatalf("%v allocations in pieces, %v in one", pieces, whole)
	}
}

func TestWhatIsNoRESPIsRefused(t *testing.T) {
	deep := strings.Repeat("*1\r\n", depthMax+1) + ":1\r\n"
	for _, text := range []string{"x\r\n", "\r\n", ":\r\n", ":1x\r\n", ":01\r\n", ":+1\r\n", ":9223372036854775808\r\n",
		"$-2\r\n",
		"$1\r\nab\r\n", "*-2\r\n", "%-1\r\n", "%1\r\n:1\r\n:2\r\n", "$99999999999\r\n", "*2000000\r\n", deep,
		"+" + strings.Repeat("x", lineBytesMax+1)} {
		var p parser
		if values, err := parse(&p, text); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.40q is %v, %v", text, values, err)
		}
	}
}

func TestARequestIsAnArrayOfTexts(t *testing.T) {
	if got := string(appendRequest(nil, words{"LOCK", "ä", ""})); got != "*3\r\n$4\r\nLOCK\r\n$2\r\nä\r\n$0\r\n\r\n" {
		t.Fatalf("%q", got)
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("%1\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n>1\r\n+x\r\n"), 3)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		if at < 0 || at > len(data) {
			return
		}
		var whole, split parser
		one, err := parse(&whole, string(data))
		two, first := parse(&split, string(data[:at]))
		if first == nil {
			var more []any
			more, first = parse(&split, string(data[at:]))
			two = append(two, more...)
		}
		if (err == nil) != (first == nil) || err == nil && fmt.Sprint(one) != fmt.Sprint(two) {
			t.Fatalf("%v, %v; in two pieces: %v, %v", one, err, two, first)
		}
	})
}
