// SPDX-License-Identifier: Apache-2.0
// Other lock libraries of npm over ioredis, unchanged: others.js SOCKET LIBRARY does what there is to do with its locks, and
// prints what came of it as JSON.
"use strict";
const { createRequire } = require("module");
const from = createRequire(process.env.NODE_MODULES + "/");
const Redis = from("ioredis");

const [socket, library] = process.argv.slice(2);
const clients = [new Redis(socket), new Redis(socket)];
const found = {};
const outcome = (promise) => promise.then((is) => (is === undefined ? "done" : is), (e) => e.name);
const refusal = (promise) => promise.then(() => "done", (e) => e.message);

const libraries = {
	"@sesamecare-oss/redlock": async (library) => {
		const { Redlock } = from(library);
		const [first, second] = clients.map((client) => new Redlock([client], { retryCount: 0 }));
		let lock = await first.acquire(["one"], 20000);
		found.taken = await outcome(second.acquire(["one"], 20000));
		lock = await lock.extend(40000);
		found.left_ms = await clients[1].pttl("one");
		found.released = (await lock.release()).attempts.length;
		found.left_after = await clients[1].exists("one");
		found.released_twice = await outcome(lock.release());
		const several = await first.acquire(["b", "a", "c"], 20000);
		found.several = await clients[0].exists("a", "b", "c");
		found.one_of_them = await outcome(second.acquire(["0", "b"], 20000));
		await several.release();
		found.several_after = await clients[0].exists("0", "a", "b", "c");
		found.inside = await second.using(["one"], 20000, () => clients[0].exists("one"));
		found.after_it = await clients[0].exists("one");
	},

	"redis-semaphore": async (library) => {
		const { Mutex, RedlockMutex, Semaphore, MultiSemaphore } = from(library);
		const once = { lockTimeout: 20000, acquireAttemptsLimit: 1, retryInterval: 1 };
		const mutex = new Mutex(clients[0], "one", once);
		await mutex.acquire();
		found.taken = await outcome(new Mutex(clients[1], "one", once).acquire());
		// It is refreshed by a program that took it over.
		const { identifier } = mutex;
		const take_over = () =>
			new Mutex(clients[1], "one", { ...once, lockTimeout: 40000, identifier, acquiredExternally: true });
		const over = take_over();
		found.taken_over = await over.tryAcquire();
		found.left_ms = await clients[1].pttl("mutex:one");
		await over.release();
		found.left_after = await clients[1].exists("mutex:one");
		found.taken_over_after = await take_over().tryAcquire();
		await mutex.release();
		const quorum = new RedlockMutex([clients[0]], "two", once);
		await quorum.acquire();
		found.quorum = await clients[1].exists("mutex:two");
		found.quorum_taken = await new RedlockMutex([clients[1]], "two", once).tryAcquire();
		await quorum.release();
		found.quorum_after = await clients[1].exists("mutex:two");
		found.semaphore = await refusal(new Semaphore(clients[0], "three", 2, once).acquire());
		found.several_permits = await refusal(new MultiSemaphore(clients[0], "four", 3, 2, once).acquire());
	},

	"node-redis-warlock": async (library) => {
		const [first, second] = clients.map(from(library));
		const lock = (warlock) =>
			new Promise((done, fail) => warlock.lock("one", 20000, (e, unlock, id) => (e ? fail(e) : done({ unlock, id }))));
		const { unlock, id } = await lock(first);
		found.taken = (await lock(second)).unlock;
		found.touched = await second.touch("one", id, 40000);
		found.left_ms = await clients[1].pttl("one:lock");
		found.touched_by_another = await second.touch("one", "another", 40000);
		const end = (of) => new Promise((done, fail) => of((e, count) => (e ? fail(e) : done(count))));
		found.unlocked = await end(unlock);
		found.unlocked_twice = await end(unlock);
		found.touched_after = await second.touch("one", id, 40000);
		const again = await new Promise((done, fail) =>
			second.optimistic("one", 20000, 100, 5, (e, unlock) => (e ? fail(e) : done(unlock))));
		found.optimistic = await end(again);
	},

	"ioredis-lock": async (library) => {
		const { createLock } = from(library);
		const [first, second] = clients.map((client) => createLock(client, { timeout: 20000 }));
		await first.acquire("one");
		found.taken = await outcome(second.acquire("one"));
		await first.extend(40000);
		found.left_ms = await clients[1].pttl("one");
		await first.release();
		found.left_after = await clients[1].exists("one");
		found.released_twice = await outcome(first.release());
		await second.acquire("one");
		await clients[0].del("one");
		found.extended_after = await outcome(second.extend(20000));
		await first.acquire("one");
		await clients[0].del("one");
		found.released_after = await outcome(first.release());
	},
};

libraries[library](library).then(
	() => {
		console.log(JSON.stringify(found));
		clients.forEach((client) => client.disconnect());
	},
	(e) => {
		console.error(e);
		process.exit(1);
	}
);
