// SPDX-License-Identifier: Apache-2.0 OR MIT

//go:build !linux

package lockbroker

import "time"

// lockbrokerd runs on Linux only. Elsewhere the package compiles, for those who write their programs there: without a
// page, and with a clock that may stand still while the machine is suspended.

var started = time.Now()

func clock() int64 { return int64(time.Since(started)) }

func mapPage(string) []byte { return nil }

func ownPage(id string, memory []byte) *page { return &page{id: id, memory: memory} }
