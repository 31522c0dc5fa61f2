# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of lockbroker for fish: `lockbroker --complete` says what the last word can be.

function __lockbroker_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (lockbroker --complete $words[2..-1] 2>/dev/null)
    # Others have chosen the names of locks: behind a name stands a tab.
    set -l first (string replace -rf '^:command (\d+)$' '$1' -- "$lines[1]")
    switch "$lines[1]"
        case ":command $first"
            __fish_complete_subcommand --fcs-skip=(math $first + 1)
        case :files
            __fish_complete_path (commandline -ct)
        case :users
            __fish_complete_users
        case '*'
            printf '%s\n' $lines
    end
end

complete -c lockbroker -f -a '(__lockbroker_complete)'
