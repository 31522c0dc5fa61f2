// SPDX-License-Identifier: Apache-2.0
//
// What Go's lock libraries do over a pool of redigo: each line of the input is a command, or a script with its keys and other
// words, in JSON; and each is answered by a line. Scripts go by their hash, and as a whole if that is not known.
package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

type request struct {
	Command, Script, Keys, Args []string
}

func words(texts ...[]string) []interface{} {
	all := []interface{}{}
	for _, some := range texts {
		for _, text := range some {
			all = append(all, text)
		}
	}
	return all
}

// As JSON has it.
func plain(answer interface{}) interface{} {
	switch is := answer.(type) {
	case []byte:
		return string(is)
	case redis.Error:
		return "-" + string(is)
	case []interface{}:
		all := make([]interface{}, len(is))
		for i, one := range is {
			all[i] = plain(one)
		}
		return all
	}
	return answer
}

func do(conn redis.Conn, r request) interface{} {
	var answer interface{}
	var err error
	if len(r.Script) > 0 {
		answer, err = redis.NewScript(len(r.Keys), r.Script[0]).Do(conn, words(r.Keys, r.Args)...)
	} else {
		answer, err = conn.Do(r.Command[0], words(r.Command[1:])...)
	}
	if err != nil {
		return "-" + err.Error()
	}
	return plain(answer)
}

func main() {
	pool := &redis.Pool{
		MaxIdle: 2,
		Dial: func() (redis.Conn, error) {
			return redis.Dial("unix", os.Args[1], redis.DialDatabase(0), redis.DialClientName("worker"))
		},
		TestOnBorrow: func(conn redis.Conn, _ time.Time) error {
			_, err := conn.Do("PING")
			return err
		},
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		if in.Decode(&r) != nil {
			break
		}
		conn := pool.Get()
		out.Encode(do(conn, r))
		conn.Close()
	}
	pool.Close()
}
