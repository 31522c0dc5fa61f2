<?php // SPDX-License-Identifier: Apache-2.0
// holder.php SOCKET NAME SECONDS: as holder.py, with Laravel's cache lock over phpredis.

require '/usr/share/php/Illuminate/Redis/autoload.php';
require '/usr/share/php/Illuminate/Cache/autoload.php';

[, $socket, $name, $seconds] = $argv;
$config = ['default' => ['host' => $socket, 'port' => 0]];
$store = new Illuminate\Cache\RedisStore(new Illuminate\Redis\RedisManager(null, 'phpredis', $config));
$lock = $store->lock($name, (int) $seconds);
echo "ready\n";
fgets(STDIN);
echo "waits\n";
$lock->block(3600);
echo 'took ', hrtime(true), "\n";
while (true) {
    echo 'works ', hrtime(true), "\n";
    usleep(20000); // a step of its work
}
