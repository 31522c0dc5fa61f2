# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of lockbroker for bash: `lockbroker --complete` says what the last word can be.

_lockbroker()
{
	local cur=${COMP_WORDS[COMP_CWORD]} line first

	COMPREPLY=()
	# Others have chosen the names of locks: compgen -W would expand them, and arithmetic runs what is in them. Behind a name
	# stands a tab, so that none of them is :command and a number, or another word for us.
	while IFS= read -r line; do
		if [[ $line =~ ^:command\ ([0-9]+)$ ]]; then
			first=$((BASH_REMATCH[1] + 1))
			if declare -F _command_offset >/dev/null; then
				_command_offset "$first"
			elif [ "$COMP_CWORD" = "$first" ]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
		elif [ "$line" = :files ]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		elif [ "$line" = :users ]; then
			mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		else
			COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
		fi
	done < <(lockbroker --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _lockbroker lockbroker
