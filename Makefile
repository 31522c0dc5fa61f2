# SPDX-License-Identifier: Apache-2.0
# lockbroker. `make help` lists what can be asked for.
#
#   BUILD=dir           where results go (build)
#   PREFIX= DESTDIR= SYSCONFDIR=   where `make install` puts them (/usr/local, nothing, /etc)
#   LIBDIR= UNITDIR=    the folder of the libraries below PREFIX (lib), that of the units (PREFIX/lib/systemd/system)
#   USERUNITDIR=        the folder of the units for `systemctl --user` (PREFIX/lib/systemd/user)
#   SYSUSERSDIR= TMPFILESDIR=   where systemd reads users and directories (PREFIX/lib/sysusers.d, PREFIX/lib/tmpfiles.d)
#   SYSTEMD=            for which version of systemd the units are (the one that is here)
#   ZSHDIR=             where zsh looks for completions, below PREFIX (share/zsh/site-functions)
#   PYTHONDIR=          where Python looks for packages, below PREFIX (as PYTHON says); nothing: lockbroker is not put there
#   CFLAGS= LDFLAGS=    the packager's; what the code needs is kept apart and always added
#   LTO=                how gcc optimizes lockbrokerd as a whole (-flto=auto and more); nothing: it does not
#   WERROR=1            warnings are errors
#   SAN=address,undefined   sanitizers (use a BUILD of its own)
#   STEPS=1             the core counts its steps, and an event with too many ends the program (use a BUILD of its own)
#   HOSTS= LOCKS=       of `make fleet` (20, 8)
#   V=1                 show the commands

# The number of the soname is the library's own: it goes up when programs built before would not run.
VERSION := $(shell cat VERSION)
SONAME = liblockbroker.so.1

BUILD ?= build
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
LIBDIR ?= lib
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
SYSTEMD ?= $(shell { pkg-config --modversion systemd || systemctl --version; } 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\).*/\1/p')
ZSHDIR ?= share/zsh/site-functions
DESTDIR ?=
# With sanitizers what is built runs a few times only: half the time of the compiler goes into the rest of -O2 and of -g.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
LDFLAGS ?=
WERROR ?=
SAN ?=
STEPS ?=
OBJCOPY ?= objcopy
LDCONFIG ?= ldconfig
V ?=
SEEDS ?= 300
FIRST ?= $(if $(SAN),$(FRESH),1)
SEED ?=
MIX ?=
MIXES ?=
TRACE ?=
SINCE ?=
# New seeds follow from the sources of the core and of the simulator: what passed once passes until one of these changes.
FRESH ?= $(shell cat $$(find daemon/base daemon/core protocol tests/sim -name '*.[ch]' | LC_ALL=C sort) | cksum | cut -d' ' -f1)000
FRESH := $(FRESH)
STANDALONE ?=
MINUTES ?= 2
SECONDS ?= 60
HOSTS ?= 20
LOCKS ?= 8
ONLY ?=
SAMPLE ?=
N ?= 300
FILES ?=
TABLE ?=
MAP ?=
JOBS ?= $(shell nproc)
INSIDE ?=
ARCH ?= arm64
# Of Debian: the one in which README's commands run.
DIST ?= bookworm
WRITE ?=
PYTHON = /usr/bin/python3
# Debian's Python looks for packages of a Debian in another folder, which debian/rules names.
PYTHONDIR ?= $(shell $(PYTHON) -c 'import sys, os; v = "lib/python%d.%d/" % sys.version_info[:2]; \
	print(v + ("dist" if os.path.exists("/usr/lib/python3/dist-packages") else "site") + "-packages")')

# ---- sources, by layer; arrows run one way: base <- protocol <- core <- io <- main, client-lib -> protocol only ----

# The sources of a folder are the files in it. One name below the root, without the folder, is as the objects are named.
in = $(patsubst $(1)/%,%,$(sort $(wildcard $(addprefix $(1)/,$(2)))))

PROTOCOL := $(call in,protocol,*.c)
# Knows nothing of locks and nothing of the system: the core may use it.
BASE_PURE = account.c busiest.c charge.c hold_record.c rule.c glob.c map.c heap.c log_bucket.c log_budget.c flight.c sha1.c sha256.c sha_blocks.c
BASE := $(filter-out $(BASE_PURE),$(call in,daemon/base,*.c))
# The core in floors, from the top: each uses those that stand behind it (tests/floors.py). The top is the folder itself.
FLOORS = top command hosts client kind lock claim session znode port
CORE_top := $(call in,daemon/core,*.c)
$(foreach floor,$(filter-out top,$(FLOORS)),$(eval CORE_$(floor) := $(call in,daemon/core,$(floor)/*.c)))
CORE = $(foreach floor,$(FLOORS),$(CORE_$(floor)))
# The adapters in floors, from the top, likewise.
IO_FLOORS = top handover socket zookeeper files conf base
IO_top := $(call in,daemon/io,*.c)
$(foreach floor,$(filter-out top,$(IO_FLOORS)),$(eval IO_$(floor) := $(call in,daemon/io,$(floor)/*.c)))
IO = $(foreach floor,$(IO_FLOORS),$(IO_$(floor)))
# The process: how it begins, and the orders that it gets.
KEEPER := $(call in,daemon,keeper/*.c)
MAIN := $(call in,daemon,*.c)
CLIENT := $(call in,client-lib,*.c)
CLI := $(call in,client-lib/cli,*.c)
HTTP := $(call in,client-lib/http,*.c)
TOP := $(call in,client-lib/top,*.c)

# Unit tests that link the pure parts only, those over a whole core, those of the configuration (its floor and inih), others
# of base, and those of adapters that need none but libevent.
UNIT_PURE = test_account.c test_log_budget.c test_containers.c test_glob.c test_bytes_format.c test_page.c test_resp.c test_resp_write.c test_name.c test_commands.c \
	test_sha1.c test_sha256.c test_delegation.c
# The search of a model: each step on the word is the real one.
UNIT_MODEL = test_delegation_search.c test_readers_search.c test_second_search.c test_weak_search.c
MODEL = process.c daemon.c others.c readers_process.c readers_daemon.c second_model.c weak_model.c weak_programs.c weak_litmus.c search.c rules.c
# Those of one floor of the core: each links the archive of that floor and those below.
UNIT_command = test_table.c test_script.c test_script_names.c test_scripts.c
UNIT_hosts = test_outbox.c test_view.c
UNIT_znode = test_contender.c
UNIT_client = test_notify.c test_deadlock.c test_mlock.c
UNIT_kind = test_rwlock.c
UNIT_lock = test_grants.c
UNIT_claim = test_listing.c
UNIT_session = test_proof.c test_window.c test_budget.c
UNIT_port = test_access.c test_work.c test_effects.c test_ledger.c test_entry.c
UNIT_CORE := $(call in,tests/unit,test_core_*.c)
UNIT_CORE_FIXTURE := $(filter-out conf_fixture.c,$(call in,tests/unit,*_fixture.c))
UNIT_CONF_FIXTURE = conf_fixture.c
UNIT_CONF := $(call in,tests/unit,test_conf*.c)
UNIT_BASE = test_rule_names.c test_backoff.c test_log.c test_flight.c test_journal.c
UNIT_IO = test_watch.c test_trim.c test_timeslice.c test_process.c test_unit.c test_feed.c test_saved.c test_saved_file.c test_life.c test_zk_parts.c test_zk_answers.c test_zk_spoiled.c test_capabilities.c test_listen.c test_conn.c test_conn_room.c test_conn_page.c test_remains.c test_disposer.c test_party.c test_kept.c test_channel.c test_identity.c \
	test_keeper.c test_worker.c test_store.c test_page_file.c test_crash_said.c test_memory_watch.c test_hold_log.c
# Those of the command: each links all of it but its main program.
UNIT_CLI = test_cli_order.c test_cli_json.c test_cli_history.c
# Of the page: each links the parts of the page that do no I/O.
UNIT_HTTP = test_plots.c test_sightings.c test_lookout_shown.c
# Those of the library, as a program has it.
UNIT_LIBRARY = test_library_delegation.c test_library_threads.c
UNIT_LIBRARY_FIXTURE = fake_daemon.c
# Threads that stand for processes with memory in common: what they do is for ThreadSanitizer to see as well.
UNIT_THREADS = test_delegation.c test_library_delegation.c test_library_threads.c
# What sanitizers see nothing new in: a search, of a model or by chance, calls what other unit tests call with them. And what they
# replace: the allocator.
UNIT_SEARCH = $(UNIT_MODEL) test_core_circles.c
UNIT_PLAIN = $(UNIT_SEARCH) test_trim.c
FUZZ = fuzz_conf.c fuzz_rule.c fuzz_resp.c fuzz_snapshot.c fuzz_salvage.c fuzz_script.c fuzz_answers.c
SIM := $(filter-out test_%,$(call in,tests/sim,*.c))
# Programs of the benchmark: the load, the null broker and the pipelined load.
BENCH_LOAD = load.c histogram.c line.c peer_broker.c peer_etcd.c peer_other.c peer_relay.c peer_zookeeper.c
BENCH_NULL = null.c
BENCH_NEIGHBOURS = neighbours.c attacks.c asker.c histogram.c
BENCH_PIPELINE = pipeline.c
BENCH_TAKEN = taken.c histogram.c
BENCH_DEADLOCK = deadlock.c
BENCH_FLEET = fleet.c histogram.c line.c
BENCH_WAY = way.c histogram.c
# Unit tests of the simulator's own parts: all of them but its main program.
SIM_UNIT = test_fakezk.c
SIM_MAIN = sim.c

# ---- flags ----

ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory

# Goals that remove files, or run a make on the same ones, run one after the other; a goal by itself runs in parallel.
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter-out all tests,$(MAKECMDGOALS))),)
.NOTPARALLEL:
# This make would take for still there what it made before.
ifneq ($(filter clean,$(filter-out $(firstword $(MAKECMDGOALS)) $(lastword $(MAKECMDGOALS)),$(MAKECMDGOALS))),)
$(error clean is the first goal or the last)
endif
endif

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
	-Wundef -Wvla -Wformat=2 -Wwrite-strings -Wno-unused-parameter
# Silent narrowing, and a default that hides a missing case, are bugs in the product and noise in a test.
WARN_PRODUCT = -Wconversion -Wno-sign-conversion -Wswitch-enum
# To clang, the text of an assertion that always fails is a conversion as well.
CLANG := $(findstring clang,$(shell $(CC) --version))
WARN_PRODUCT += $(if $(CLANG),-Wno-string-conversion)
# Glibc warns when asked to fortify what is not optimized.
OPTIMIZED = $(filter-out -O0,$(filter -O%,$(CFLAGS)))
# Those of these flags that the compiler knows, for this kind of processor.
known = $(foreach flag,$(1),$(if $(shell $(CC) -Werror $(flag) -x c -c /dev/null -o /dev/null 2>&1),,$(flag)))
ifeq ($(SAN),)
# What is on the stack is zero before it is written: nothing of an earlier call is ever read or sent.
HARDEN := -fstack-protector-strong $(call known,-fstack-clash-protection -fcf-protection -mbranch-protection=standard \
	-ftrivial-auto-var-init=zero)
# After the packager's, which may ask for less.
FORTIFY = $(if $(STEPS),,$(if $(OPTIMIZED),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
else
HARDEN = -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
# Some warnings of gcc see what is not there when sanitizers rewrite the code; clang does not know them all.
HARDEN += $(if $(CLANG),,-Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-format-truncation -Wno-format-overflow)
# ThreadSanitizer knows no fences. They order what is atomic anyway, so that it sees no race for want of them.
HARDEN += $(if $(CLANG),,$(if $(filter thread,$(SAN)),-Wno-tsan))
endif
REQUIRED = -std=gnu11 -D_GNU_SOURCE -DLOCKBROKERD_VERSION='"$(VERSION)"' -DLOCKBROKER_SYSCONFDIR='"$(SYSCONFDIR)"' \
	-I. -Idaemon -MMD -MP $(WARN) $(HARDEN) $(if $(WERROR),-Werror)
LINK_REQUIRED = $(if $(SAN),-fsanitize=$(SAN)) -Wl,-z,relro,-z,now -Wl,--as-needed
# How structures are cleared. gcc has x86 repeat an instruction: 12 ns for 160 bytes, where memset() takes 1.3.
CLEARING := -mmemset-strategy=unrolled_loop:32:noalign,libcall:-1:noalign
CLEARING := $(call known,$(CLEARING))
# The objects of lockbrokerd have both machine code, which everything else is linked from, and what gcc optimizes the
# whole daemon from: small functions go into those that call them, as far as -O3 goes in that. With one seed for each
# source, builds of the same sources are the same.
LTO ?= $(if $(or $(SAN),$(STEPS),$(CLANG)),,$(if $(OPTIMIZED),-flto=auto --param=max-inline-insns-auto=30 -fno-plt $(CLEARING)))
WHOLE = $(if $(LTO),$(LTO) -ffat-lto-objects -frandom-seed=$<)
# Nothing that is built says where it was built. With -flto gcc does not tell the assembler that.
SAME = -ffile-prefix-map=$(CURDIR)=. $(if $(CLANG),,-Wa,--debug-prefix-map=$(CURDIR)=.)
COMPILE = $(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) $(FORTIFY) $(SAME) -fno-lto
LINK_WHOLE = $(CC) $(CFLAGS) $(HARDEN) $(SAME) -pie $(LINK_REQUIRED) $(COUNTING) $(LDFLAGS) $(or $(LTO),-fno-lto)
LINK = $(CC) $(CFLAGS) -pie $(LINK_REQUIRED) $(COUNTING) $(LDFLAGS) -fno-lto
# The pure parts call on each edge of their control flow, and for what libc does with bytes, what counts it (tests/steps/).
COUNTED = $(if $(STEPS),-fsanitize-coverage=trace-pc -include tests/steps/bytes.h)
COUNTING = $(if $(STEPS),$(STEPS_O) -Wl$(comma)--wrap=broker_handle -Wl$(comma)--wrap=__sanitizer_cov_trace_pc)
comma = ,

DAEMON_LIBS = -lzookeeper_st -levent_core -linih
UNIT_LIBS = $(OBJ)/tests/unit/unit.o -lcmocka

# ---- files ----

OBJ = $(BUILD)/obj
PIC = $(BUILD)/pic
TESTS = $(BUILD)/tests

objects = $(addprefix $(OBJ)/$(1)/,$(2:.c=.o))

PROTOCOL_O = $(call objects,protocol,$(PROTOCOL))
BASE_PURE_O = $(call objects,daemon/base,$(BASE_PURE))
BASE_O = $(call objects,daemon/base,$(BASE))
KEEPER_O = $(call objects,daemon,$(KEEPER))
MAIN_O = $(call objects,daemon,$(MAIN)) $(KEEPER_O)
CLIENT_O = $(call objects,client-lib,$(CLIENT))
CLI_O = $(call objects,client-lib/cli,$(CLI))
HTTP_O = $(call objects,client-lib/http,$(HTTP))
TOP_O = $(call objects,client-lib/top,$(TOP))
# The files of the page, built in.
PAGE_FILES := $(sort $(wildcard client-lib/http/page/*))
PAGE_O = $(OBJ)/client-lib/http/page_files.o
SHARED_O = $(addprefix $(PIC)/client-lib/,$(CLIENT:.c=.o))
PROTOCOL_PIC_O = $(addprefix $(PIC)/protocol/,$(PROTOCOL:.c=.o))
SIM_O = $(call objects,tests/sim,$(SIM))
SIM_PARTS_O = $(call objects,tests/sim,$(filter-out $(SIM_MAIN),$(SIM)))
STEPS_O = $(OBJ)/tests/steps/count.o
EVENT_O = $(if $(STEPS),$(OBJ)/tests/steps/event.o)
SIM_UNIT_BIN = $(addprefix $(TESTS)/,$(SIM_UNIT:.c=))
UNIT_PURE_BIN = $(addprefix $(TESTS)/,$(UNIT_PURE:.c=))
UNIT_MODEL_BIN = $(addprefix $(TESTS)/,$(UNIT_MODEL:.c=))
UNIT_FLOOR_BIN = $(foreach floor,$(FLOORS),$(UNIT_$(floor):%.c=$(TESTS)/%))
UNIT_CORE_BIN = $(addprefix $(TESTS)/,$(UNIT_CORE:.c=))
UNIT_CONF_BIN = $(addprefix $(TESTS)/,$(UNIT_CONF:.c=))
UNIT_BASE_BIN = $(addprefix $(TESTS)/,$(UNIT_BASE:.c=))
UNIT_CLI_BIN = $(addprefix $(TESTS)/,$(UNIT_CLI:.c=))
UNIT_HTTP_BIN = $(addprefix $(TESTS)/,$(UNIT_HTTP:.c=))
UNIT_LIBRARY_BIN = $(addprefix $(TESTS)/,$(UNIT_LIBRARY:.c=))
UNIT_THREADS_BIN = $(addprefix $(TESTS)/,$(UNIT_THREADS:.c=))
UNIT_IO_BIN = $(addprefix $(TESTS)/,$(UNIT_IO:.c=))
UNIT_PLAIN_BIN = $(addprefix $(TESTS)/,$(UNIT_PLAIN:.c=))
FUZZ_BIN = $(addprefix $(TESTS)/,$(FUZZ:.c=))
# Those that take longest are begun first.
UNIT_BIN = $(FUZZ_BIN) $(UNIT_PURE_BIN) $(UNIT_MODEL_BIN) $(UNIT_FLOOR_BIN) $(UNIT_CORE_BIN) $(UNIT_CONF_BIN) $(UNIT_BASE_BIN) $(UNIT_IO_BIN) $(UNIT_CLI_BIN) $(UNIT_HTTP_BIN) $(UNIT_LIBRARY_BIN) $(SIM_UNIT_BIN)

UNIT_NO_SEARCH_BIN = $(filter-out $(addprefix $(TESTS)/,$(UNIT_SEARCH:.c=)),$(UNIT_BIN))

# A later archive may use nothing of an earlier one.
A_CORE = $(FLOORS:%=$(BUILD)/libcore_%.a)
A_PROTOCOL = $(BUILD)/libprotocol.a
# For the client library, which takes out of it what it needs.
A_PROTOCOL_PIC = $(BUILD)/libprotocol_pic.a
A_BASE_PURE = $(BUILD)/libbase_pure.a
A_BASE = $(BUILD)/libbase.a
A_IO = $(IO_FLOORS:%=$(BUILD)/libio_%.a)
A_IO_BASE = $(BUILD)/libio_base.a
A_IO_CONF = $(BUILD)/libio_conf.a $(A_IO_BASE)
A_IO_FILES = $(BUILD)/libio_files.a $(A_IO_CONF)
A_IO_ZOOKEEPER = $(BUILD)/libio_zookeeper.a $(A_IO_FILES)
A_IO_SOCKET = $(BUILD)/libio_socket.a $(A_IO_ZOOKEEPER)
A_IO_HANDOVER = $(BUILD)/libio_handover.a $(A_IO_SOCKET)
PURE = $(A_CORE) $(A_PROTOCOL) $(A_BASE_PURE)
ARCHIVES = $(PURE) $(A_BASE) $(A_IO) $(A_PROTOCOL_PIC)

DAEMON = $(BUILD)/lockbrokerd
COMMAND = $(BUILD)/lockbroker
HTTP_BIN = $(BUILD)/lockbroker-http
# Where there is no ncurses it is left out.
NCURSES_LIBS = -lncursesw -ltinfo
NCURSES := $(shell echo 'int main(void) { return 0; }' | $(CC) $(CPPFLAGS) $(LDFLAGS) -include curses.h -x c - -o /dev/null $(NCURSES_LIBS) 2>/dev/null && echo yes)
TOP_BIN = $(if $(NCURSES),$(BUILD)/lockbroker-top)
SHARED = $(BUILD)/$(SONAME)
SHARED_MAP = client-lib/liblockbroker.map
STATIC = $(BUILD)/liblockbroker.a
SIM_BIN = $(BUILD)/sim
# Tests that need them are about measurements or users, and run without sanitizers.
BENCH_BIN = $(if $(SAN),,$(addprefix $(TESTS)/,bench-load bench-null bench-pipeline bench-neighbours bench-taken bench-deadlock bench-fleet bench-way bench-blocks.so bench-legs.so))

.PHONY: all java javadoc java-check help deps quick check beside-check release clang-unit sanitized-system fuzz short-fuzz stateful unit unit-plain unit-sanitized threads sim steps golden mutants mutate system system-once deb \
	booted bookworm trixie bookworm-arm64 trixie-arm64 repo dist fresh restarts races torture demo bench fleet profile lines lint layers packaging abi reproducible count format install uninstall clean tests
.DEFAULT_GOAL = all
.DELETE_ON_ERROR:
.SUFFIXES:

all: $(DAEMON) $(COMMAND) $(HTTP_BIN) $(TOP_BIN) $(SHARED) $(STATIC) ## build everything into BUILD (needs no network)
	$(if $(TOP_BIN),,@echo 'lockbroker top is left out: there is no ncurses with wide characters (Debian: libncurses-dev)')

# The same bytes from the same sources: the files in it are of no date. The adapters (client-lib/java/*/) are sources only.
JAR = $(BUILD)/lockbroker.jar
JAVA := client-lib/java/module-info.java $(sort $(wildcard client-lib/java/lockbroker/*.java))
JAVA_DATE = 2020-01-01T00:00:00Z
java: $(JAR) ## the library for Java, BUILD/lockbroker.jar (needs a JDK, 17 or later, which nothing else here does)
$(JAR): $(JAVA) VERSION
	$(call say,JAVA,$@)
	@rm -rf $(BUILD)/java && mkdir -p $(BUILD)/java
	$(Q)javac --release 17 -Xlint:all $(if $(WERROR),-Werror) --module-version $(VERSION) -d $(BUILD)/java $(JAVA)
	$(Q)jar --create --file $@ --date=$(JAVA_DATE) -C $(BUILD)/java .

javadoc: $(JAR) ## what it says of each class, BUILD/javadoc
	@rm -rf $(BUILD)/javadoc
	$(Q)javadoc -quiet -Xdoclint:all,-missing -Werror --release 17 -notimestamp -noindex -nohelp -d $(BUILD)/javadoc $(JAVA)

java-check: all $(JAR) ## the tests of the library for Java, with real brokers
	@$(PYTEST) -n 3 tests/system/test_java*.py

help: ## this list
	@sed -n 's/^#   //p' Makefile
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r t d; \
		do printf '  make %-12s %s\n' "$$t" "$$d"; done

deps: ## install what the build needs, on Debian 12 or 13 (quick when nothing is missing); `sh tests/deps.sh check` for tests
	@sh tests/deps.sh

# ---- rules ----

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

# Objects are made again when the flags change; archives, libraries and programs, when what they are made of does: an
# object that is no longer listed is newer than nothing.
$(BUILD)/.flags: export NOW = $(COMPILE) | $(COUNTED) | $(LINK_WHOLE) | $(LINK) | $(WARN_PRODUCT)
$(BUILD)/.lists: export NOW = $(LINK_WHOLE) | $(LINK) | $(AR) $(LD) $(OBJCOPY) | $(DAEMON_LIBS) | $(UNIT_LIBS) | \
	$(PROTOCOL) | $(BASE_PURE) | $(BASE) | $(CORE) | $(IO) | $(CLIENT) | $(CLI) | $(HTTP) | $(TOP) | $(PAGE_FILES) | $(UNIT_CORE_FIXTURE) | \
	$(UNIT_CONF_FIXTURE) | \
	$(SIM) | $(SIM_MAIN) | $(BENCH_LOAD) | $(BENCH_NULL) | $(BENCH_PIPELINE) | $(BENCH_TAKEN) | $(BENCH_DEADLOCK) | $(BENCH_FLEET) | $(BENCH_WAY)
$(BUILD)/.flags $(BUILD)/.lists: force
	@mkdir -p $(BUILD)
	@printf '%s\n' "$$NOW" | cmp -s - $@ || printf '%s\n' "$$NOW" > $@
.PHONY: force
force:

$(OBJ)/tests/%.o: tests/%.c $(BUILD)/.flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE) -fPIE -c $< -o $@

$(OBJ)/%.o: %.c $(BUILD)/.flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE) $(WARN_PRODUCT) $(WHOLE) $(COUNTED_HERE) -fPIE -c $< -o $@

$(PIC)/%.o: %.c $(BUILD)/.flags
	@mkdir -p $(@D)
	$(call say,CC,'$< (shared)')
	$(Q)$(COMPILE) $(WARN_PRODUCT) -fPIC -c $< -o $@

# The inputs of a link or an archive among the prerequisites.
inputs = $(filter %.o %.a,$^)

$(PROTOCOL_O) $(BASE_PURE_O) $(call objects,daemon/core,$(CORE)): COUNTED_HERE = $(COUNTED)
$(ARCHIVES): | $(if $(STEPS),$(STEPS_O))
$(BUILD)/libcore_top.a: $(EVENT_O)

$(ARCHIVES) $(DAEMON) $(COMMAND) $(HTTP_BIN) $(TOP_BIN) $(SHARED) $(STATIC) $(UNIT_BIN) $(SIM_BIN) $(BENCH_BIN): $(BUILD)/.lists

$(foreach floor,$(FLOORS),$(eval $(BUILD)/libcore_$(floor).a: $(call objects,daemon/core,$(CORE_$(floor)))))
$(A_PROTOCOL): $(PROTOCOL_O)
$(A_PROTOCOL_PIC): $(PROTOCOL_PIC_O)
$(A_BASE_PURE): $(BASE_PURE_O)
$(A_BASE): $(BASE_O)
$(foreach floor,$(IO_FLOORS),$(eval $(BUILD)/libio_$(floor).a: $(call objects,daemon/io,$(IO_$(floor)))))
$(ARCHIVES):
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcsD $@ $(inputs)

$(DAEMON): $(MAIN_O) $(A_IO) $(A_BASE) $(PURE)
	$(call say,LINK,$@)
	$(Q)$(LINK_WHOLE) -o $@ $(MAIN_O) $(A_IO) $(A_CORE) $(A_PROTOCOL) $(A_BASE) $(A_BASE_PURE) $(DAEMON_LIBS)

$(COMMAND): $(CLI_O) $(CLIENT_O) $(A_PROTOCOL)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

# The only client that needs libevent: a program of its own, which `lockbroker http` becomes.
HTTP_SHARED_O = $(call objects,client-lib/cli,process_one.c json.c shown.c) $(call objects,client-lib,reply.c socket_path.c)
$(HTTP_BIN): $(HTTP_O) $(PAGE_O) $(HTTP_SHARED_O) $(A_PROTOCOL)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs) -levent_extra -levent_core

# The only one that needs ncurses, which `lockbroker top` becomes.
$(BUILD)/lockbroker-top: $(TOP_O) $(OBJ)/client-lib/cli/shown.o $(CLIENT_O) $(A_PROTOCOL)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs) $(NCURSES_LIBS)

$(PAGE_O:.o=.c): client-lib/http/page_files.sh $(PAGE_FILES) $(BUILD)/.lists
	@mkdir -p $(@D)
	$(Q)sh $< $(PAGE_FILES) >$@

$(PAGE_O): $(PAGE_O:.o=.c) $(BUILD)/.flags
	$(call say,CC,'client-lib/http/page/*')
	$(Q)$(COMPILE) $(WARN_PRODUCT) -fPIE -c $< -o $@

# Both libraries show lb_ names only, and need nothing of the command's. (What sanitizers add is not there at this point.)
$(SHARED): $(SHARED_O) $(A_PROTOCOL_PIC) $(SHARED_MAP)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=$(SHARED_MAP) $(LINK_REQUIRED) \
		$(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) -fno-lto -o $@ $(inputs)
	$(Q)ln -sf $(SONAME) $(BUILD)/liblockbroker.so

$(STATIC): $(SHARED_O) $(A_PROTOCOL_PIC)
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(LD) -r -o $(BUILD)/lockbroker_static.o $(inputs)
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='lb_*' $(BUILD)/lockbroker_static.o
	$(Q)$(AR) rcsD $@ $(BUILD)/lockbroker_static.o

# ---- tests ----

# The main program of each unit test.
$(filter-out $(FUZZ_BIN),$(UNIT_BIN)): $(OBJ)/tests/unit/unit.o

$(UNIT_PURE_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(PURE) $(UNIT_LIBS)

MODEL_O = $(call objects,tests/model,$(MODEL))
$(UNIT_MODEL_BIN): $(TESTS)/%: $(OBJ)/tests/model/%.o $(MODEL_O) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(MODEL_O) $(A_PROTOCOL) -lcmocka

# The floors of a list from that one on.
from = $(if $(2),$(if $(filter $(1),$(firstword $(2))),$(2),$(call from,$(1),$(wordlist 2,$(words $(2)),$(2)))))
$(foreach floor,$(FLOORS),$(if $(UNIT_$(floor)),$(eval $(UNIT_$(floor):%.c=$(TESTS)/%): \
	UNDER = $(patsubst %,$(BUILD)/libcore_%.a,$(call from,$(floor),$(FLOORS))))))
$(UNIT_FLOOR_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(UNDER) $(A_PROTOCOL) $(A_BASE_PURE) $(UNIT_LIBS)

FIXTURE_O = $(call objects,tests/unit,$(UNIT_CORE_FIXTURE))
$(UNIT_CORE_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(FIXTURE_O) $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(FIXTURE_O) $(PURE) $(UNIT_LIBS)

CONF_FIXTURE_O = $(call objects,tests/unit,$(UNIT_CONF_FIXTURE))
$(UNIT_CONF_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(CONF_FIXTURE_O) $(A_IO_CONF) $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(CONF_FIXTURE_O) $(A_IO_CONF) $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE) $(UNIT_LIBS) -linih

$(UNIT_BASE_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE) $(UNIT_LIBS)

# Each links the floor it tests and those below.
$(TESTS)/test_saved $(TESTS)/test_saved_file $(TESTS)/test_life $(TESTS)/test_page_file: UNDER = $(A_IO_FILES) $(BUILD)/libcore_port.a
$(TESTS)/test_watch $(TESTS)/test_process $(TESTS)/test_unit $(TESTS)/test_trim $(TESTS)/test_timeslice: UNDER = $(A_IO_BASE)
$(TESTS)/test_feed: UNDER = $(A_IO_BASE) $(A_CORE)
$(TESTS)/test_zk_parts $(TESTS)/test_zk_answers $(TESTS)/test_zk_spoiled $(TESTS)/test_capabilities: UNDER = $(A_IO_ZOOKEEPER) $(BUILD)/libcore_znode.a $(BUILD)/libcore_port.a
$(TESTS)/test_listen $(TESTS)/test_conn $(TESTS)/test_conn_room $(TESTS)/test_conn_page $(TESTS)/test_remains $(TESTS)/test_disposer $(TESTS)/test_party $(TESTS)/test_kept: UNDER = $(A_IO_SOCKET) $(BUILD)/libcore_port.a
$(TESTS)/test_channel $(TESTS)/test_identity $(TESTS)/test_store: UNDER = $(A_IO_HANDOVER) $(BUILD)/libcore_port.a
$(TESTS)/test_keeper $(TESTS)/test_worker: UNDER = $(KEEPER_O) $(A_IO) $(A_CORE)
$(TESTS)/test_keeper $(TESTS)/test_worker: $(KEEPER_O) $(A_IO)
$(TESTS)/test_memory_watch $(TESTS)/test_hold_log: UNDER = $(A_IO) $(A_CORE)
$(TESTS)/test_memory_watch $(TESTS)/test_hold_log: $(A_IO)
$(TESTS)/test_crash_said: UNDER = $(OBJ)/daemon/io/crash.o
$(TESTS)/test_crash_said: $(OBJ)/daemon/io/crash.o
$(UNIT_IO_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(A_IO_HANDOVER) $(A_CORE) $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(UNDER) $(A_BASE) $(A_PROTOCOL) $(A_BASE_PURE) $(UNIT_LIBS) -levent_core -lzookeeper_st

LIBRARY_FIXTURE_O = $(call objects,tests/unit,$(UNIT_LIBRARY_FIXTURE))
CLI_PARTS_O = $(filter-out $(OBJ)/client-lib/cli/main.o,$(CLI_O)) $(CLIENT_O)
$(UNIT_LIBRARY_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(LIBRARY_FIXTURE_O) $(STATIC) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(LIBRARY_FIXTURE_O) $(STATIC) $(A_PROTOCOL) $(UNIT_LIBS)

$(UNIT_CLI_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(CLI_PARTS_O) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(CLI_PARTS_O) $(A_PROTOCOL) $(UNIT_LIBS)

$(TESTS)/test_lookout_shown: $(OBJ)/client-lib/http/lookout_shown.o
HTTP_PARTS_O = $(call objects,client-lib/http,plots.c sightings.c)
$(UNIT_HTTP_BIN): $(TESTS)/%: $(OBJ)/tests/unit/%.o $(HTTP_PARTS_O) $(STATIC) $(A_PROTOCOL)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(filter-out %/unit.o,$(filter %.o,$^)) $(STATIC) $(A_PROTOCOL) $(UNIT_LIBS)

# Each target is also a libFuzzer target; here a small driver feeds it seeded mutations.
$(FUZZ_BIN): $(TESTS)/%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/driver.o $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(FUZZ_LIBS)

# Those of libFuzzer, which is a part of clang: see tests/fuzz/run.sh. The one that drives the simulator has a build of its own.
LIBFUZZER = $(FUZZ:%.c=$(TESTS)/libfuzzer/%)
LIBFUZZER_CORE = $(TESTS)/libfuzzer/fuzz_core
.PHONY: libfuzzer libfuzzer-core
libfuzzer: $(LIBFUZZER)
libfuzzer-core: $(LIBFUZZER_CORE)
$(TESTS)/fuzz_conf $(TESTS)/libfuzzer/fuzz_conf: $(A_IO_CONF) $(A_BASE)
$(TESTS)/fuzz_conf $(TESTS)/libfuzzer/fuzz_conf: FUZZ_LIBS = -linih
$(TESTS)/fuzz_answers $(TESTS)/libfuzzer/fuzz_answers: $(A_IO_ZOOKEEPER) $(A_BASE)
$(TESTS)/fuzz_answers $(TESTS)/libfuzzer/fuzz_answers: FUZZ_LIBS = -levent_core -lzookeeper_st
$(LIBFUZZER_CORE): $(SIM_PARTS_O)
$(LIBFUZZER) $(LIBFUZZER_CORE): $(TESTS)/libfuzzer/%: $(OBJ)/tests/fuzz/%.o $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(FUZZ_LIBS)

$(SIM_UNIT_BIN): $(TESTS)/%: $(OBJ)/tests/sim/%.o $(SIM_PARTS_O) $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $< $(SIM_PARTS_O) $(PURE) $(UNIT_LIBS)

$(SIM_BIN): $(SIM_O) $(PURE)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(SIM_O) $(PURE)

$(TESTS)/bench-load: $(call objects,tests/bench,$(BENCH_LOAD)) $(STATIC)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs) -lzookeeper_st

$(TESTS)/bench-null: $(call objects,tests/bench,$(BENCH_NULL))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs) -levent_core

$(TESTS)/bench-pipeline: $(call objects,tests/bench,$(BENCH_PIPELINE))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

$(TESTS)/bench-neighbours: $(call objects,tests/bench,$(BENCH_NEIGHBOURS))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

$(TESTS)/bench-taken: $(call objects,tests/bench,$(BENCH_TAKEN)) $(STATIC)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

$(TESTS)/bench-deadlock: $(call objects,tests/bench,$(BENCH_DEADLOCK)) $(PURE)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

$(TESTS)/bench-fleet: $(call objects,tests/bench,$(BENCH_FLEET))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

# To be preloaded. Blocks finds its callers by the frame pointer.
$(TESTS)/bench-blocks.so $(TESTS)/bench-legs.so: $(TESTS)/bench-%.so: tests/bench/%.c tests/bench/mapped.h
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fno-omit-frame-pointer -fPIC -shared $(LDFLAGS) -o $@ $<

$(TESTS)/bench-way: $(call objects,tests/bench,$(BENCH_WAY))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(inputs)

# Include the public header as everybody does.
$(call objects,tests/bench,$(BENCH_LOAD) taken.c): CPPFLAGS += -Iclient-lib

tests: $(UNIT_BIN) $(SIM_BIN) $(BENCH_BIN) ## build the tests

unit: $(UNIT_BIN) ## unit tests and a short fuzz of the codec
	@sh tests/unit/run.sh $^

# The two halves of a check, which runs no unit test twice but test_trim.
unit-plain: $(UNIT_PLAIN_BIN)
	@sh tests/unit/run.sh $^
unit-sanitized: $(UNIT_NO_SEARCH_BIN)
	@sh tests/unit/run.sh $^

# In a build of its own. Where the kernel places memory too freely for ThreadSanitizer, it is asked not to.
threads: ## the unit tests of memory that processes share, with ThreadSanitizer
	@$(MAKE) BUILD=$(BUILD)/threads SAN=thread run-threads
.PHONY: run-threads
run-threads: $(UNIT_THREADS_BIN)
	@$$(if setarch -R true 2>/dev/null; then echo setarch -R; fi) sh tests/unit/run.sh $^

# The fixed seeds; with sanitizers, as many that follow from the sources (FRESH). What fails says how to replay it. One goal for
# each mix, so that they run side by side and none stands in the output of another. "-" is the mix of the seed; the simulator
# says which others there are (_ is a space).
SIM_RUNS = $(foreach mix,$(MIXES) -,sim@$(mix)@$(FIRST))
sim: $(SIM_BIN) ## the simulator: SEEDS= from FIRST= on (1; with SAN=, FRESH=), or SEED= one to replay (TRACE=1: all of it)
ifneq ($(SEED),)
	$(SIM_BIN) --seed $(SEED) $(if $(MIX),--mix '$(MIX)') $(if $(TRACE),--trace)
else
	@mixes=$$($(SIM_BIN) --other-mixes) && $(MAKE) -Otarget FIRST=$(FIRST) MIXES="$$(echo "$$mixes" | tr ' ' _)" sim-runs
endif

.PHONY: sim-runs $(SIM_RUNS)
sim-runs: $(SIM_RUNS)
sim_options = $(if $(filter -,$(1)),--seeds $(SEEDS),--seeds $$(($(SEEDS) / 4 + 1)) --mix '$(subst _, ,$(1))')
$(SIM_RUNS): $(SIM_BIN)
	$(SIM_BIN) $(call sim_options,$(word 2,$(subst @, ,$@))) --first $(lastword $(subst @, ,$@))

# The same seeds in each run, in a build of its own, where an event that takes more steps than it may ends the program.
steps: ## the core counts its steps: no event takes more than it may (tests/steps/), and the longest one is printed
	@$(MAKE) BUILD=$(BUILD)/steps STEPS=1 CFLAGS=-O1 run-steps
.PHONY: run-steps
run-steps: $(SIM_BIN) $(TESTS)/test_core_steps
	@LOCKBROKER_STEPS=1 $(TESTS)/test_core_steps
	@LOCKBROKER_STEPS=1 $(SIM_BIN) --seeds 40
	@LOCKBROKER_STEPS=1 $(SIM_BIN) --seeds 8 --mix anything
	@LOCKBROKER_STEPS=1 $(SIM_BIN) --seeds 8 --mix 'kills, anything'
	@LOCKBROKER_STEPS=1 $(SIM_BIN) --seeds 3 --mix load

golden: $(SIM_BIN) ## the traces of fixed seeds are those recorded; WRITE=1 records them, when a change is meant
	@$(PYTHON) -B tests/sim/golden.py $(SIM_BIN) $(if $(WRITE),--write)

# A sample begins with those of the files that differ (tests/changed.sh, or CHANGED=).
mutants: $(SIM_BIN) ## break the rules one by one; the simulator must notice each (ONLY= in their names; SAMPLE= so many; WRITE=1 records)
	@$(PYTHON) -B tests/sim/mutants.py --cc '$(CC)' --jobs $(shell nproc) $(if $(SAN),,--objects $(OBJ)) \
		--only '$(ONLY)' $(if $(WRITE),--write) \
		$(if $(SAMPLE),--sample $(SAMPLE) --seed $(FRESH) $${CHANGED:-$$(sh tests/changed.sh)})

# In builds of its own, below BUILD/mutate. The map takes as long as all tests, a mutant five seconds to four minutes.
mutate: ## mutants of what the simulator does not reach: N= by SEED= of FILES=, or ONLY= in their names; TABLE=, MAP=all, JOBS=
	@$(PYTHON) -B tests/mutate/mutate.py --build '$(BUILD)' --number '$(N)' --seed '$(or $(SEED),1)' --files '$(FILES)' \
		--only '$(ONLY)' --table '$(TABLE)' --map '$(MAP)' --jobs '$(JOBS)'

PYCACHE ?= $(BUILD)/pycache
PYTEST = PYTHONDONTWRITEBYTECODE=1 LOCKBROKER_BUILD='$(abspath $(BUILD))' LOCKBROKER_PYCACHE='$(abspath $(PYCACHE))' \
	$(PYTHON) -m pytest -q -rs -p no:cacheprovider
MARKED ?=
# For each core: most tests wait most of the time.
WORKERS ?= 3
SYSTEM_TESTS = tests/torture tests/system tests/mutate
# What the workers would all do at the same time is done once.
COLLECT = $(PYTEST) --collect-only $(SYSTEM_TESTS) >/dev/null || :

system: all $(BENCH_BIN) ## real daemons, a real ZooKeeper, Redis's own clients
	@$(COLLECT)
	@$(PYTEST) -n $$(($(WORKERS) * $(shell nproc))) $(if $(MARKED),-m '$(MARKED)') $(SYSTEM_TESTS)

.PHONY: system-npm
system-npm:
	@$(MAKE) SYSTEM_TESTS='$(ELSEWHERE)' MARKED='not release_only' system

# Each system test once: with sanitizers where they can find something, and beside that, with the plain build, those that are
# marked plain_only. Those that are marked release_only are run by `make release` alone, as a part of all.
system-once: all $(BENCH_BIN)
	@$(COLLECT)
	@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && \
	{ env --default-signal $(PYTEST) -n $(shell nproc) -m 'plain_only and not release_only' $(SYSTEM_TESTS) >"$$log" 2>&1 & } && \
	plain=$$!; $(MAKE) $(SANITIZED) PYCACHE='$(PYCACHE)' COLLECT=: WORKERS=4 MARKED='not release_only' system; status=$$?; \
	wait $$plain || status=1; echo 'those that are marked plain_only:'; cat "$$log"; exit $$status

# From a copy of the sources, with the flags of Debian; what those who use them read is checked as well.
deb: ## Debian packages into BUILD/deb (dpkg-buildpackage -b -us -uc, then lintian)
	@sh tests/deps.sh deb
	@sh tests/deb.sh '$(BUILD)/deb' '$(BUILD)'
	@lintian --allow-root --fail-on error,warning $(BUILD)/deb/*.changes
	@ls $(BUILD)/deb/*.deb

# Each has the packages that a repository wants, in BUILD/bookworm/deb and BUILD/trixie/deb. As root, and with Debian's mirror.
bookworm trixie: ## that release of Debian, whichever this is: its compiler, its ZooKeeper, packages, README and INSTALL on a booted systemd
	@sh tests/deps.sh booted
	@sh tests/debian.sh $@ '$(BUILD)/$@'
	@LOCKBROKER_DEBIAN=$@ $(PYTEST) tests/booted/test_release.py

# Nothing of arm64 is installed on this machine.
bookworm-arm64 trixie-arm64: ## the packages of that release for arm64, in BUILD/*-arm64/deb; a daemon of them grants a lock under qemu
	@sh tests/deps.sh fresh
	@sh tests/debian_cross.sh $(subst -, ,$@) '$(BUILD)/$@'

# Where it will be served is said by docs/INSTALL.md.
KEY ?=
URL ?= $(shell sed -n 's|.* "\(https://.*\)/[$$].*|\1|p' docs/INSTALL.md)
REPO ?= $(BUILD)/repo
PACKAGES ?= $(or $(wildcard $(BUILD)/*/deb),$(BUILD)/deb)
repo: ## a signed apt repository in REPO= (BUILD/repo) of the PACKAGES= that are built: KEY= of yours, URL= where it will be
	@sh tests/deps.sh repo
	@sh tests/repo.sh '$(REPO)' '$(KEY)' '$(URL)' $(PACKAGES)

dist: ## the sources of this commit as an archive in BUILD/dist, always the same bytes, and its checksum
	@sh tests/dist.sh '$(BUILD)/dist'

# The first run takes half a minute longer, because packages are fetched. Each test file has a machine of its own, which waits most
# of the time: so three files run side by side.
booted: all ## the service on a booted systemd, in a container; as root, and with Debian's mirror
	@sh tests/deps.sh deb
	@sh tests/deps.sh booted
	@$(PYTEST) -n 3 --dist loadfile tests/booted

# NEED_CONTAINERS=1: where there is no engine, the tests fail.
.PHONY: containers
containers: ## the image of Containerfile with podman and runc: daemons and clients in containers; as root, and with Debian's mirror
	@sh tests/deps.sh containers
	@$(PYTEST) tests/containers

# NEED_BROWSER=1: where there is no Chromium, the tests fail.
.PHONY: browser screenshots
browser: all ## the page of `lockbroker http --page` in a headless Chromium
	@sh tests/deps.sh browser
	@$(PYTEST) tests/browser

screenshots: all ## the pictures in docs/PAGE.md, from real daemons and locks; a minute and a half
	@sh tests/deps.sh browser
	@LOCKBROKER_BUILD='$(abspath $(BUILD))' $(PYTHON) -B tests/browser/screenshots.py docs

# The searches and the benchmarks would show nothing new on another kind of processor.
.PHONY: cross cross-all cross-unit
cross-all: all $(UNIT_NO_SEARCH_BIN) $(SIM_BIN)
cross-unit: $(filter-out $(FUZZ_BIN),$(UNIT_NO_SEARCH_BIN))
	@sh tests/unit/run.sh $^
cross: ## build for ARCH=arm64 in BUILD/cross, then unit tests (UNIT_TESTS=memory: some) and SEEDS= under qemu; also with pages of 64 KiB
	@sh tests/deps.sh cross
	@MAKE='$(MAKE)' sh tests/cross.sh '$(BUILD)' '$(ARCH)' '$(SEEDS)' '$(FRESH)' '$(or $(UNIT_TESTS),all)'

# INSIDE= runs instead of README's commands.
fresh: ## README's two commands on a minimal Debian (DIST=bookworm), with the sources as they are committed; as root (INSIDE= another one)
	@sh tests/deps.sh fresh
	@sh tests/fresh.sh '$(DIST)' '$(BUILD)/fresh' $(if $(INSIDE),'$(INSIDE)')

restarts: all ## 100 hand-overs, 100 kills and 100 kills with the keeper's pauses, under the load of 200 clients (half an hour)
	@LOCKBROKER_HANDOVERS=100 LOCKBROKER_CRASHES=100 LOCKBROKER_CLIENTS=200 \
		$(PYTEST) -n 3 tests/system/test_handover_load.py tests/system/test_crash.py

races: all ## 1,000 races of two kinds for one name: on one host, on two, and without ZooKeeper
	@LOCKBROKER_RACES=1000 $(PYTEST) tests/system/test_kinds.py

torture: all ## MINUTES= of one fault after the other, with a checker of all histories; SEED= orders the faults
	@LOCKBROKER_BUILD='$(abspath $(BUILD))' $(PYTHON) -B tests/torture/torture.py --minutes $(MINUTES) \
		$(if $(SEED),--seed $(SEED))

SANITIZED = BUILD=$(BUILD)/san SAN=address,undefined
quick: ## less than a minute, before a commit: unit tests, lint of what differs from origin/main, some seeds and mutants
	@$(MAKE) all tests
	@$(MAKE) unit
	@sh tests/quick.sh $(SIM_BIN) $(OBJ) $$(date +%s)000

SAY_STEP = echo "== $$(date +%T) $$step"
# A line that calls it begins with '+': make hands its jobs on where it sees $(MAKE) only, and each step would have one job.
steps_in_turn = for step in $(1); do $(SAY_STEP); $(MAKE) $$step || exit 1; done
# What a check builds without sanitizers: a goal by itself is built in parallel.
.PHONY: check-plain
check-plain: all $(SIM_BIN) $(BENCH_BIN) $(UNIT_PLAIN_BIN)
# Prerequisites would run side by side; a check runs its steps in order, so that the first failure is the last output. Each test
# runs once: with sanitizers, unless they see nothing new in it. What is longer is for `make release`.
CHECK = layers packaging golden unit-plain 'sim FIRST=$(FRESH) SEEDS=100' 'mutants SAMPLE=60' threads steps
CHECK_SANITIZED = 'all tests' unit-sanitized 'sim FIRST=$(FRESH:%000=%500) SEEDS=40'
check: ## all tests, once each (installs what is missing first)
	@sh tests/deps.sh check
	@$(MAKE) check-plain
	+@$(call steps_in_turn,$(CHECK))
	@for step in $(CHECK_SANITIZED); do $(SAY_STEP), sanitized; $(MAKE) $(SANITIZED) $$step || exit 1; done
	+@$(call steps_in_turn,'stateful SECONDS=10' system-once)
	@echo "== all checks passed"

# What CI runs beside a check. The packages are made once, without the unit tests that have just run.
# A minimal Debian has neither npm nor git, and the tests that need them are skipped there.
ELSEWHERE = tests/system/test_dist.py tests/system/test_redis_libraries.py tests/system/test_redis_connect.py tests/system/test_harness.py
beside-check: ## what CI runs beside a check: Debian 13, packages, lint of what differs, a booted systemd, containers, a browser, a short fuzz, libraries from npm, arm64
	+@$(call steps_in_turn,trixie 'deb DEB_BUILD_OPTIONS=nocheck' system-npm)
	@step='lint, booted, containers'; $(SAY_STEP); $(MAKE) -Otarget LINT=changed lint-and-booted
	+@$(call steps_in_turn,browser 'short-fuzz SECONDS=5' 'cross ARCH=arm64 SEEDS=100 UNIT_TESTS=memory')
# Two goals of one command would run one after the other. The container waits most of the time, while lint does all it can.
.PHONY: lint-and-booted
lint-and-booted: lint booted containers

# Whatever there is: what CI runs, each test with and without sanitizers, all mutants, more seeds, all sources for lint.
RELEASE = fresh 'fresh DIST=trixie' bookworm trixie bookworm-arm64 trixie-arm64 'all tests' unit sim mutants system '$(SANITIZED) unit' \
	'$(SANITIZED) sim' sanitized-system clang-unit reproducible fuzz deb lint-and-booted browser \
	'cross ARCH=arm64 SEEDS=2000' 'torture MINUTES=5' races 'fleet HOSTS=3 LOCKS=2 SECONDS=2'
release: export NEED_NPM = 1
release: ## all that there is, before a release: two hours, as root; goes on where it ended for this commit; records that all passed (tests/release-log)
	@for packages in lint check booted containers browser; do sh tests/deps.sh $$packages || exit 1; done
	+@MAKE='$(MAKE)' sh tests/release.sh '$(BUILD)' $(RELEASE)

# Sees more of what C leaves undefined than gcc does: arithmetic on NULL, for one.
CLANG_UNIT = $(if $(shell command -v clang),$(MAKE) BUILD=$(BUILD)/clang SAN=undefined CC=clang WERROR= unit)
clang-unit: ## the unit tests as clang sanitizes, where there is clang
	@$(or $(CLANG_UNIT),echo 'skipped: there is no clang' $(if $(NEED_CLANG),>&2; exit 1))
sanitized-system: ## the system tests with sanitizers
	@$(MAKE) $(SANITIZED) all tests
	@$(MAKE) $(SANITIZED) system

STATEFUL = LOCKBROKER_BUILD='$(abspath $(BUILD))/$(1)' $(PYTHON) -B tests/fuzz/stateful.py --seconds $(SECONDS) \
	$(if $(SEED),--seed $(SEED))
# Each target is built for libFuzzer where there is clang, else as the driver has it, with sanitizers (short-fuzz); then a
# sanitized daemon is asked for anything, and two with a ZooKeeper (stateful), and one that counts its steps.
fuzz: short-fuzz ## SECONDS= of bytes of strangers for each target, and for a whole daemon (60; SEED= of that)
	@$(MAKE) stateful
	@$(MAKE) BUILD=$(BUILD)/steps STEPS=1 CFLAGS=-O1 all
	@$(call STATEFUL,steps)
short-fuzz:
	@MAKE='$(MAKE)' CC='$(CC)' NEED_CLANG='$(NEED_CLANG)' sh tests/fuzz/run.sh '$(BUILD)' $(SECONDS) $(FUZZ:.c=)
stateful:
	@$(MAKE) $(SANITIZED) all
	@$(call STATEFUL,san) --zookeeper & $(call STATEFUL,san); status=$$?; wait $$! && exit $$status

demo: ## see it work: two hosts, one ZooKeeper, 16 processes (STANDALONE=1: one host, no ZooKeeper)
	@sh tests/deps.sh demo
	@$(MAKE) all
	@$(PYTHON) -B tests/demo/demo.py --build $(BUILD) $(if $(STANDALONE),--standalone)

# Ten minutes of a quiet machine. Each peer that is not there is left out, and named.
bench: ## against a null broker and other lock services; QUICK=1: less than three minutes. Results in BUILD/bench
	@sh tests/deps.sh bench || echo 'make bench: goes on with the peers that are there'
	@$(MAKE) all $(BENCH_BIN) $(if $(shell command -v javac),java)
	@$(PYTHON) -B tests/bench/bench.py --build $(BUILD) $(if $(QUICK),--quick)

# Three minutes with 200 hosts; each has a process and some descriptors, and none has a keeper. Every run adds its column.
FLEET_SECONDS = $(if $(filter file,$(origin SECONDS)),20,$(SECONDS))
fleet: all $(TESTS)/bench-fleet ## HOSTS= real daemons that contend for LOCKS= for SECONDS= (20): the table of docs/SIZING.md, in BUILD/fleet
	@sh tests/deps.sh demo
	@$(PYTHON) -B tests/bench/fleet.py --build $(BUILD) --hosts $(HOSTS) --locks $(LOCKS) --seconds $(FLEET_SECONDS)

# perf, strace and valgrind: what cannot be had, or is not allowed, is left out, and named.
profile: ## where the time of a pair goes, beside a null broker; QUICK=1: half a minute. Results in BUILD/bench
	@sh tests/deps.sh profile || echo 'make profile: goes on with what is there'
	@$(MAKE) all $(BENCH_BIN)
	@$(PYTHON) -B tests/bench/profile.py --build $(BUILD) $(if $(QUICK),--quick)

# valgrind's lackey writes a line for each access of the daemon to memory.
lines: all $(TESTS)/bench-blocks.so ## what the daemon stores for a warm pair: lines of the cache, by structure; STORES=1: each store
	@sh tests/deps.sh profile || echo 'make lines: goes on with what is there'
	@$(PYTHON) -B tests/bench/lines.py --build $(BUILD) $(if $(STORES),--stores)

layers: all ## the pure parts name memory and string functions only; each floor uses those below it
	@$(if $(SAN),echo 'layers: skipped under sanitizers',sh tests/layers.sh $(PURE) && $(PYTHON) -B tests/floors.py $(OBJ))

packaging: all ## install below a private directory, use what is there, uninstall: nothing may be left
	@MAKE='$(MAKE)' sh tests/packaging.sh '$(BUILD)' '$(CC)'

abi: all ## the library shows what is recorded in tests/abi; WRITE=1 records it, when a change is meant
	@sh tests/abi.sh '$(SHARED)' client-lib/lockbroker.h $(if $(WRITE),--write)

reproducible: all ## build once more, elsewhere: every byte of what is installed has to be the same
	@MAKE='$(MAKE)' sh tests/reproducible.sh '$(BUILD)'

# Warnings of the compiler are found where tests are built with WERROR=1.
lint: layers ## layout, static analysis, layers, house rules (LINT=changed: the analyzers read what differs, tests/changed.sh)
	@sh tests/lint.sh $(if $(filter changed,$(LINT)),$$(sh tests/changed.sh --sources),all)

count: ## lines of code and files of each folder; SINCE= a commit to compare with
	@$(PYTHON) -B tests/count.py $(SINCE)

format: ## clang-format in place, of the lines that differ from origin/main
	@git clang-format -f $$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD)

# ---- install ----

D = $(DESTDIR)$(PREFIX)
L = $(D)/$(LIBDIR)
U = $(DESTDIR)$(UNITDIR)
USER_U = $(DESTDIR)$(USERUNITDIR)
# Since 256 systemd logs a credential that LoadCredential= does not find; ImportCredential=, which may find none, is of 254, and
# of 257 where the credential has another name outside of the service.
since = [ "0$(SYSTEMD)" -ge $(1) ]
MAN = $(wildcard client-lib/man/*.[1358])
UNITS = $(wildcard systemd/*.service systemd/*.socket)
USER_UNITS = $(wildcard systemd/user/*)
# Of each unit one for instances as well: its own text, but for their names.
INSTANCE_UNITS = $(patsubst %.socket,%@.socket,$(UNITS:.service=@.service))
ALL_UNITS = $(addprefix $(U)/,$(notdir $(UNITS) $(INSTANCE_UNITS))) $(addprefix $(USER_U)/,$(notdir $(USER_UNITS)))
IN_PLACE = sed -e 's|^\(Exec[A-Za-z]*=\)/[^ ]*/lockbrokerd |\1$(PREFIX)/sbin/lockbrokerd |' \
	-e 's|^\(Exec[A-Za-z]*=\)/[^ ]*/lockbroker |\1$(PREFIX)/bin/lockbroker |' \
	$(if $(shell $(call since,254) && echo yes),-e 's|^LoadCredential=\([^:]*\)$$|ImportCredential=\1|') \
	$(if $(shell $(call since,257) && echo yes),-e 's|^LoadCredential=\(.*\):\(.*\)|ImportCredential=\2:\1|') \
	-e 's|/etc/lockbroker\([^ ]*\.conf\)|$(SYSCONFDIR)/lockbroker\1|'
SYSUSERS = $(DESTDIR)$(SYSUSERSDIR)/lockbrokerd.conf
TMPFILES = $(DESTDIR)$(TMPFILESDIR)/lockbrokerd.conf
CONF = $(DESTDIR)$(SYSCONFDIR)/lockbroker.conf
# Below DOCDIR as in the sources, so that the links among them lead somewhere.
DOCS = README.md CHANGELOG.md SECURITY.md LICENSE LICENSE-MIT NOTICE protocol/PROTOCOL.md $(wildcard docs/*.md docs/design/*.md) \
	conf/lockbroker.nft $(wildcard conf/kubernetes/*.yaml)
DOCDIR = $(D)/share/doc/lockbroker
PYTHON_PACKAGE = $(notdir $(wildcard client-lib/python/lockbroker/*.py client-lib/python/lockbroker/py.typed))
P = $(D)/$(PYTHONDIR)/lockbroker
COMPLETIONS = $(D)/share/bash-completion/completions/lockbroker $(D)/$(ZSHDIR)/_lockbroker \
	$(D)/share/fish/vendor_completions.d/lockbroker.fish
man_target = $(D)/share/man/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))

install: all ## install below DESTDIR/PREFIX; an existing configuration file is kept
	install -d $(D)/sbin $(D)/bin $(L)/pkgconfig $(D)/include $(U) $(USER_U) $(DESTDIR)$(SYSCONFDIR)
	install -m 755 $(DAEMON) $(D)/sbin/lockbrokerd
	install -m 755 $(COMMAND) $(D)/bin/lockbroker
	install -D -m 755 $(HTTP_BIN) $(D)/libexec/lockbroker/lockbroker-http
	$(if $(TOP_BIN),install -D -m 755 $(TOP_BIN) $(D)/libexec/lockbroker/lockbroker-top)
	for f in lockbroker.rules.yml grafana-dashboard.json; do install -D -m 644 conf/$$f $(D)/share/lockbroker/$$f || exit 1; done
	install -D -m 644 conf/lockbroker.catalog $(D)/lib/systemd/catalog/lockbroker.catalog
	install -m 644 $(SHARED) $(L)/$(SONAME)
	ln -sf $(SONAME) $(L)/liblockbroker.so
	install -m 644 $(STATIC) $(L)/liblockbroker.a
	install -m 644 client-lib/lockbroker.h $(D)/include/lockbroker.h
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/$(LIBDIR)' 'includedir=$${prefix}/include' '' \
		'Name: lockbroker' 'Description: client of lockbrokerd, the lock broker of a host' 'Version: $(VERSION)' \
		'Libs: -L$${libdir} -llockbroker' 'Cflags: -I$${includedir}' > $(L)/pkgconfig/lockbroker.pc
	for m in $(MAN); do install -D -m 644 $$m $(D)/share/man/man$${m##*.}/$${m##*/} || exit 1; done
	for u in $(notdir $(UNITS)); do $(IN_PLACE) systemd/$$u >$(U)/$$u && \
		sed -f systemd/instance.sed systemd/$$u | $(IN_PLACE) >$(U)/$${u%.*}@.$${u##*.} || exit 1; done
	for u in $(notdir $(USER_UNITS)); do $(IN_PLACE) systemd/user/$$u >$(USER_U)/$$u || exit 1; done
	chmod 644 $(ALL_UNITS)
	install -D -m 644 client-lib/completion/lockbroker.bash $(word 1,$(COMPLETIONS))
	install -D -m 644 client-lib/completion/_lockbroker $(word 2,$(COMPLETIONS))
	install -D -m 644 client-lib/completion/lockbroker.fish $(word 3,$(COMPLETIONS))
	test -z '$(PYTHONDIR)' || for f in $(PYTHON_PACKAGE); do \
		install -D -m 644 client-lib/python/lockbroker/$$f $(P)/$$f || exit 1; done
	install -D -m 644 systemd/sysusers.conf $(SYSUSERS)
	install -D -m 644 systemd/tmpfiles.conf $(TMPFILES)
	for f in $(DOCS); do install -D -m 644 $$f $(DOCDIR)/$$f || exit 1; done
	test -e $(CONF) || install -m 644 conf/lockbroker.conf $(CONF)
	@PATH="$$PATH:/usr/sbin:/sbin" LDCONFIG='$(LDCONFIG)' sh client-lib/ldconfig.sh '$(DESTDIR)' '$(PREFIX)/$(LIBDIR)' '$(SONAME)'

uninstall: ## remove what install put there (a configuration file that was edited stays)
	rm -f $(D)/sbin/lockbrokerd $(D)/bin/lockbroker $(D)/libexec/lockbroker/lockbroker-http $(D)/libexec/lockbroker/lockbroker-top \
		$(D)/share/lockbroker/lockbroker.rules.yml $(D)/share/lockbroker/grafana-dashboard.json \
		$(D)/lib/systemd/catalog/lockbroker.catalog $(L)/$(SONAME) $(L)/liblockbroker.so \
		$(L)/liblockbroker.a $(D)/include/lockbroker.h $(L)/pkgconfig/lockbroker.pc \
		$(foreach m,$(MAN),$(call man_target,$(m))) \
		$(COMPLETIONS) $(SYSUSERS) $(TMPFILES) $(ALL_UNITS) $(addprefix $(DOCDIR)/,$(DOCS))
	test -z '$(PYTHONDIR)' || { rm -rf $(P)/__pycache__; rm -f $(addprefix $(P)/,$(PYTHON_PACKAGE)); rmdir $(P) 2>/dev/null || :; }
	for d in docs/design docs protocol conf/kubernetes conf .; do rmdir $(DOCDIR)/$$d 2>/dev/null || :; done
	if cmp -s conf/lockbroker.conf $(CONF); then rm -f $(CONF); fi

clean: ## remove BUILD
	rm -rf $(BUILD)

-include $(shell find $(OBJ) $(PIC) -name '*.d' 2>/dev/null)
