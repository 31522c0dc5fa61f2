/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connecting to the daemon's socket, and what to say if that fails. Not part of the public interface. */
#pragma once

#include "wire.h"

/* Connects within the patience to the socket at lb->path. LB_CONNECTION: nobody listens; LB_DENIED: not permitted. */
enum lb_result connect_socket(struct lb *lb);
