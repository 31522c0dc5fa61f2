// SPDX-License-Identifier: Apache-2.0
// The public header as a C++ program sees it: holds a lock, with options, and prints its token.
#include <lockbroker.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace
{
struct closer {
	void operator()(lb *handle) const
	{
		lb_close(handle);
	}
};
using handle = std::unique_ptr<lb, closer>;

handle open()
{
	lb *opened = nullptr;

	lb_open(nullptr, &opened);
	return handle(opened);
}
} // namespace

int main()
{
	const handle mine = open();
	const char *const words[] = { "HOLDERS", "orders/42" };
	const lb_reply *holders = nullptr;
	lb_options options = LB_OPTIONS;
	std::int64_t token = 0;
	struct lb_event event; // there is a function of that name, too

	options.timeout_ms = 60000;
	options.data = "from C++";
	if (lb_lock_with(mine.get(), "orders/42", &options, &token) != LB_OK ||
	    lb_command(mine.get(), 2, words, &holders) != LB_OK || lb_reply_count(holders) != 1) {
		std::fprintf(stderr, "%s\n", lb_error(mine.get()));
		return 1;
	}
	if (lb_event(mine.get(), 0, &event) != LB_NONE)
		return 1;
	std::printf("%lld by a header of %s\n", static_cast<long long>(token), LOCKBROKER_VERSION);
	return 0;
}
