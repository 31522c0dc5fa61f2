/* SPDX-License-Identifier: Apache-2.0 */
#include "io/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/flight.h"
#include "base/log.h"

enum { STACK_BYTES = 64 << 10 };

static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

/* All that the handler needs is here before: it may not ask for anything. */
static struct {
	const struct flight_ring *flight;
	const char *prefix;
	const int *last_error; /* the errno of the thread that began: not everywhere may one ask for its place */
	char most[CRASH_MOST_MAX + 1]; /* "": it is not known */
	_Alignas(max_align_t) char stack[STACK_BYTES];
} crash;

/* ---- lines, without what allocates or is of stdio ---- */

struct text {
	char data[FLIGHT_LINE_MAX + 64];
	size_t len;
};

/* Leaves room for the newline. */
static void put(struct text *t, const char *text)
{
	while (*text && t->len < sizeof(t->data) - 1)
		t->data[t->len++] = *text++;
}

static void put_number(struct text *t, uint64_t value, unsigned int base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	put(t, digits + at);
}

static void begin(struct text *t)
{
	t->len = 0;
	put(t, crash.prefix);
}

static void end(struct text *t)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t written;

	t->data[t->len++] = '\n';
	/* A log that nobody reads must not keep the next process from serving. */
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	written = write(STDERR_FILENO, t->data, t->len);
	(void)written;
}

/* What the kernel says; of a signal that somebody has sent it knows no address. */
static void put_address(struct text *t, const siginfo_t *info)
{
	if (info->si_code <= 0 || info->si_signo == SIGABRT)
		return;
	put(t, " address=0x");
	put_number(t, (uint64_t)(uintptr_t)info->si_addr, 16);
}

static void say_signal(int number, const siginfo_t *info)
{
	struct text t;

	begin(&t);
	/* ZooKeeper's library writes to memory that it was not given. */
	if ((number == SIGABRT || number == SIGSEGV) && *crash.last_error == ENOMEM) {
		put(&t,
		    "out of memory: this process ends, as if it was killed; more memory has to be allowed for the service "
		    "(MemoryMax=, LimitAS=, vm.overcommit_memory), or less used (limits.* in the configuration)  "
		    "event=out_of_memory most=\"");
		put(&t, *crash.most ? crash.most : "nobody that is known");
		put(&t, "\"");
		end(&t);
		begin(&t);
	}
	put(&t, "this process crashes by signal ");
	put_number(&t, (uint64_t)number, 10);
	put(&t, "; its flight recorder and its calls follow  event=crash signal=");
	put_number(&t, (uint64_t)number, 10);
	put_address(&t, info);
	end(&t);
}

static void say_records(void)
{
	struct flight_reader reader = flight_read(crash.flight, CRASH_RECORDS_MAX);
	char line[FLIGHT_LINE_MAX + 1];
	struct text t;
	size_t len;

	while ((len = flight_line(&reader, line)) > 0) {
		line[len] = '\0';
		begin(&t);
		put(&t, line);
		end(&t);
	}
}

static void say_frame(int number, void *address)
{
	const char *slash;
	struct text t;
	Dl_info info;

	begin(&t);
	put(&t, "a call  event=frame number=");
	put_number(&t, (uint64_t)number, 10);
	put(&t, " address=0x");
	put_number(&t, (uint64_t)(uintptr_t)address, 16);
	if (dladdr(address, &info) && info.dli_fname) {
		slash = strrchr(info.dli_fname, '/');
		put(&t, " object=");
		put(&t, slash ? slash + 1 : info.dli_fname);
		put(&t, " offset=0x");
		put_number(&t, (uint64_t)((uintptr_t)address - (uintptr_t)info.dli_fbase), 16);
		if (info.dli_sname) {
			put(&t, " symbol=");
			put(&t, info.dli_sname);
		}
	}
	end(&t);
}

/* Where the process was. NULL: it called that, or this kind of processor is not known here. */
static void *program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (void *)(uintptr_t)context->uc_mcontext.pc;
#else
	return NULL;
#endif
}

/* Who called what is no code: there backtrace() knows no way on. NULL: nobody knows. */
static void *caller(const ucontext_t *context)
{
#if defined(__x86_64__)
	return *(void **)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (void *)(uintptr_t)context->uc_mcontext.regs[30];
#else
	return NULL;
#endif
}

static void crashed(int number, siginfo_t *info, void *context)
{
	void *at = program_counter(context), *frames[CRASH_FRAMES_MAX];
	Dl_info object;
	int count;

	/* Whatever goes wrong from here on ends the process. */
	crash_end();
	say_signal(number, info);
	say_records();
	say_frame(0, at);
	count = backtrace(frames, CRASH_FRAMES_MAX);
	for (int i = 0; i < count; i++)
		say_frame(i + 1, frames[i]);
	/* It reads the stack, which may be none: so it is the last that is said. */
	if (!dladdr(at, &object))
		say_frame(count + 1, caller(context));
	/* It is delivered when this function returns. */
	raise(number);
}

/* A sanitizer has one already. It has none for SIGABRT, but for one that the process before this call has set. */
static bool is_taken(int number)
{
	struct sigaction now;

	return number != SIGABRT && sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL;
}

void crash_begin(const struct flight_ring *flight)
{
	const stack_t stack = { .ss_sp = crash.stack, .ss_size = sizeof(crash.stack) };
	struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_ONSTACK | SA_SIGINFO };
	void *primed[1];

	crash.flight = flight;
	crash.prefix = log_form() == LOG_FORM_JOURNAL ? "<3>" : "error: ";
	crash.last_error = &errno;
	backtrace(primed, 1); /* the first call loads what the others need */
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (!is_taken(faults[i]))
			sigaction(faults[i], &action, NULL);
}

void crash_most(const char *text)
{
	size_t len = 0;

	for (; *text && len < CRASH_MOST_MAX; text++)
		if (*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\')
			crash.most[len++] = *text;
	crash.most[len] = '\0';
}

void crash_end(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct sigaction now;

		if (sigaction(faults[i], NULL, &now) == 0 && now.sa_sigaction == crashed)
			signal(faults[i], SIG_DFL);
	}
}
