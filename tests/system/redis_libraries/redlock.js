// SPDX-License-Identifier: Apache-2.0
// redlock of npm over ioredis, both unchanged: redlock.js SOCKET VERSION, and then
//   each                    does what there is to do with a lock, and prints what came of it as JSON
//   rounds LOCK FILE COUNT  adds 1 to the number in the file so often, each time under the lock
//   polls LOCK FILE COUNT   the same, and asks as often as redlock does by itself
"use strict";
const { createRequire } = require("module");
const fs = require("fs");
const from = createRequire(process.env.NODE_MODULES + "/");
const Redis = from("ioredis");

const [socket, version, mode, name, file, count] = process.argv.slice(2);
const clients = [new Redis(socket), new Redis(socket)];
const found = {};

// The two versions have other names for the same.
const kind = from("redlock" + version);
const Redlock = kind.default || kind;
const patient = { retryCount: -1, retryDelay: 5, retryJitter: 5 };
const make = (client, options) => new Redlock([client], options);
const acquire = (r, names, ms) => (version === "4" ? r.lock(names, ms) : r.acquire(names, ms));
const release = (lock) => (version === "4" ? lock.unlock() : lock.release());
const outcome = (promise) => promise.then(() => "done", (e) => e.name);

async function each() {
	const first = make(clients[0], { retryCount: 0 }), second = make(clients[1], { retryCount: 0 });
	let lock = await acquire(first, ["one"], 20000);
	found.taken = await outcome(acquire(second, ["one"], 20000));
	found.other_is_free = await outcome(acquire(second, ["two"], 20000).then(release));
	lock = await lock.extend(40000);
	found.left_ms = await clients[1].pttl("one");
	found.released = await outcome(release(lock));
	found.left_after = await clients[1].exists("one");
	found.released_twice = await outcome(release(lock));
	found.extended_after = await outcome(lock.extend(1000));
	const several = await acquire(first, ["b", "a", "c"], 20000);
	found.several = await clients[0].exists("a", "b", "c");
	found.one_of_them = await outcome(acquire(second, ["0", "b"], 20000));
	found.none_of_them = await clients[0].exists("0");
	await release(several);
	found.several_after = await clients[0].exists("a", "b", "c");
}

async function rounds() {
	const redlock = make(clients[0], mode === "polls" ? { retryCount: -1 } : patient);

	for (let i = 0; i < Number(count); i++) {
		const lock = await acquire(redlock, [name], 60000);
		fs.writeFileSync(file, String(Number(fs.readFileSync(file)) + 1));
		await release(lock);
	}
}

(mode === "each" ? each() : rounds()).then(
	() => {
		console.log(JSON.stringify(found));
		clients.forEach((client) => client.disconnect());
	},
	(e) => {
		console.error(e);
		process.exit(1);
	}
);
