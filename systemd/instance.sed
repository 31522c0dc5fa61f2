# SPDX-License-Identifier: Apache-2.0
# Makes lockbrokerd@.service, lockbrokerd@.socket, lockbroker-http@.service and lockbroker-page@.service of the units without @:
# what is the plain daemon's own gets the name of the instance, %i, and nothing else differs. The options come after the file, so that a copy of
# lockbroker.conf is a configuration.
/^Description=/s/$/ (%i)/
s|/etc/lockbroker\.conf|/etc/lockbroker@%i.conf -o daemon.socket=/run/lockbroker@%i/lockbroker.sock \\\
	-o daemon.rundir=/run/lockbroker@%i -o daemon.statedir=/var/lib/lockbroker@%i|
s|/run/lockbroker/|/run/lockbroker@%i/|
s/^\(RuntimeDirectory\|StateDirectory\)=lockbroker$/&@%i/
s/^LoadCredential=\(.*\)/LoadCredential=\1:\1@%i/
s/^After=lockbrokerd\.service/After=lockbrokerd@%i.service/
# For the command that reloads it, and for the metrics and the page.
/^\[Service]$/a\
Environment=LOCKBROKER_SOCKET=/run/lockbroker@%i/lockbroker.sock LOCKBROKER_LOG_IDENTIFIER=%p@%i\
SyslogIdentifier=%p@%i
