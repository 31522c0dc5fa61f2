<?php // SPDX-License-Identifier: Apache-2.0
// Locks of Laravel's cache over phpredis, both unchanged: laravel.php SOCKET, and then
//   each                    does what there is to do with a lock, and prints what came of it as JSON
//   rounds LOCK FILE COUNT  adds 1 to the number in the file so often, each time under the lock

require '/usr/share/php/Illuminate/Redis/autoload.php';
require '/usr/share/php/Illuminate/Cache/autoload.php';

[, $socket, $mode] = $argv;

// Two stores with a connection each.
function store(string $socket): Illuminate\Cache\RedisStore
{
    $config = ['default' => ['host' => $socket, 'port' => 0]];
    return new Illuminate\Cache\RedisStore(new Illuminate\Redis\RedisManager(null, 'phpredis', $config));
}

function each_of(string $socket): array
{
    $one = store($socket)->lock('one', 20);
    $other = store($socket)->lock('one', 20);
    $found = ['got' => $one->get(), 'taken' => $other->get(), 'other_releases' => $other->release()];
    $found['owner'] = store($socket)->restoreLock('one', $one->owner())->release();
    $found['after'] = $other->get();
    $other->forceRelease();
    $found['forced'] = $one->get();
    $found['released'] = $one->release();
    $found['released_twice'] = $one->release();
    $found['in_a_block'] = $one->get(fn () => $other->get());
    $found['after_it'] = $one->block(5, fn () => 'inside');
    $found['added'] = store($socket)->add('flag', 1, 20);
    $found['added_twice'] = store($socket)->add('flag', 1, 20);
    return $found;
}

if ($mode === 'each') {
    echo json_encode(each_of($socket)), "\n";
} else {
    [, , , $name, $file, $count] = $argv;
    $lock = store($socket)->lock($name, 60)->betweenBlockedAttemptsSleepFor(5);
    for ($i = 0; $i < (int) $count; $i++) {
        $lock->block(250, fn () => file_put_contents($file, (string) ((int) file_get_contents($file) + 1)));
    }
}
