/* SPDX-License-Identifier: Apache-2.0 */
/* Ends everything that a client holds, waits for, observes and has asked, at once. The connection stays. */
#pragma once

struct client;
struct hosts;

void release_client(struct hosts *h, struct client *c);
