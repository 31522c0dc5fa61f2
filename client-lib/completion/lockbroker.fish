# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of lockbroker for fish: commands, options, and the names of locks that this host knows.

set -l commands lock hold sem campaign leader observe ls who why limit hosts revoke force-unlock ping info metrics check \
    http audit access accounts reload config log drain restart call
set -l verbs lock hold sem campaign
set -l named $verbs leader observe ls who why limit revoke force-unlock

# A broker that is away or slow must not hold up the line that is being typed.
function __lockbroker_names
    timeout 1 lockbroker ls 2>/dev/null | sed -e 1d -e 's/  .*//'
end

complete -c lockbroker -n "not __fish_seen_subcommand_from $commands" -f -a "$commands"
complete -c lockbroker -n "not __fish_seen_subcommand_from $commands" -s S -l socket -r -d 'The socket of the broker'
complete -c lockbroker -l json -d 'Print JSON'
complete -c lockbroker -s h -l help -d 'Print a summary'
complete -c lockbroker -s V -l version -d 'Print the version'
complete -c lockbroker -n "__fish_seen_subcommand_from $named" -a '(__lockbroker_names)'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -s n -l nonblock -d 'Do not wait'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -s w -l wait -x -d 'Wait at most that many seconds'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -s E -l conflict-exit-code -x -d 'Exit status if it is taken'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -l splay -x -d 'First sleep for a part of that'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -l connect -x -d 'How long to try a broker that is not there'
complete -c lockbroker -n "__fish_seen_subcommand_from $verbs" -l verbose -d 'Say what is done'
complete -c lockbroker -n "__fish_seen_subcommand_from lock sem campaign" -s o -l close -d 'CMD does not inherit the connection'
complete -c lockbroker -n "__fish_seen_subcommand_from lock sem campaign" -s F -l no-fork -d 'CMD takes our place'
complete -c lockbroker -n "__fish_seen_subcommand_from lock sem campaign" -s r -l on-revoke -x -d 'Signal when somebody asks for it'
complete -c lockbroker -n "__fish_seen_subcommand_from lock sem campaign" -l min-hold -x -d 'Hold it for at least that long'
complete -c lockbroker -n "__fish_seen_subcommand_from lock sem campaign" -s k -x -d 'Grace after a loss'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold" -s s -l shared -d 'Share it'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold" -s x -l exclusive -d 'Hold it alone'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold sem" -s L -l lease -x -d 'Release it after that'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold" -s d -x -d 'Show that text with it'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold" -s a -x -a '(__lockbroker_names)' -d 'Also hold that lock'
complete -c lockbroker -n "__fish_seen_subcommand_from lock hold" -l owner -x -d 'Commands that belong together'
complete -c lockbroker -n "__fish_seen_subcommand_from sem" -s l -x -d 'Permits that it has'
complete -c lockbroker -n "__fish_seen_subcommand_from sem" -s K -l count -x -d 'Permits to hold'
complete -c lockbroker -n "__fish_seen_subcommand_from info" -f -a 'server clients locks session zookeeper audit limits stats'
complete -c lockbroker -n "__fish_seen_subcommand_from drain" -l wait -d 'Until nothing is held'
complete -c lockbroker -n "__fish_seen_subcommand_from drain" -l off -d 'Grant again'
complete -c lockbroker -n "__fish_seen_subcommand_from ls" -s a -l all -d 'Of all hosts'
complete -c lockbroker -n "__fish_seen_subcommand_from ls" -s w -l watch -d 'Again and again'
complete -c lockbroker -n "__fish_seen_subcommand_from check" -l lock -x -d 'Also take and release that lock'
complete -c lockbroker -n "__fish_seen_subcommand_from metrics" -l textfile -r -d 'Write to that file'
complete -c lockbroker -n "__fish_seen_subcommand_from http" -l listen -x -d 'Where'
complete -c lockbroker -n "__fish_seen_subcommand_from http" -l host -x -d 'Also answer as that'
complete -c lockbroker -n "__fish_seen_subcommand_from http" -l anywhere -d 'Where other hosts can connect'
