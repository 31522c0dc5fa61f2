# SPDX-License-Identifier: Apache-2.0 OR MIT
# Completion of lockbroker for bash: commands, options, and the names of locks that this host knows.

_lockbroker_names()
{
	local name

	# A broker that is away or slow must not hold up the line that is being typed. Others have chosen the names: compgen -W
	# would expand them.
	while IFS= read -r name; do
		if [[ $name == "$cur"* ]]; then
			COMPREPLY+=("$(printf %q "$name")")
		fi
	done < <(timeout 1 lockbroker ls 2>/dev/null | sed -e 1d -e 's/  .*//')
}

_lockbroker()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb= name= i word options
	local commands='lock hold sem campaign leader observe ls who why limit hosts revoke force-unlock ping info metrics check
		http audit access accounts reload config log drain restart call'
	local common='--nonblock --wait --conflict-exit-code --splay --connect --verbose --help --version'
	local runs='--close --no-fork --on-revoke --min-hold'

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [ -n "$verb" ] && [ -n "$name" ]; then
			break
		fi
		case $word in
		-S | --socket | -w | --wait | --timeout | -E | --conflict-exit-code | -L | --lease | -k | -r | --on-revoke | -d | -a | -l | \
			-K | --count | --owner | --connect | --min-hold | --splay) i=$((i + 1)) ;;
		-*) ;;
		*) if [ -z "$verb" ]; then verb=$word; else name=$word; fi ;;
		esac
	done
	if [ -z "$verb" ]; then
		case $prev in
		-S | --socket) COMPREPLY=($(compgen -f -- "$cur")) ;;
		*) COMPREPLY=($(compgen -W "$commands --socket --json --help --version" -- "$cur")) ;;
		esac
		return
	fi
	case $verb in
	lock | hold | sem | campaign)
		if [ -n "$name" ]; then
			# The rest is a command line of its own.
			if [ "$verb" != hold ]; then
				if declare -F _command_offset >/dev/null; then
					_command_offset $i
				else
					COMPREPLY=($(compgen -c -- "$cur"))
				fi
			fi
			return
		fi
		case $verb in
		lock) options="$common $runs --shared --exclusive --lease --owner" ;;
		hold) options="$common --shared --exclusive --lease --owner --json" ;;
		sem) options="$common $runs --lease --count" ;;
		campaign) options="$common $runs" ;;
		esac
		case $prev in
		-w | --wait | --timeout | -E | --conflict-exit-code | -L | --lease | -k | -d | -l | -K | --count | --owner | --connect | \
			--min-hold | --splay) return ;;
		-r | --on-revoke) COMPREPLY=($(compgen -W 'TERM INT HUP USR1 USR2 none' -- "$cur")) ;;
		*) case $cur in
			-*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
			*) _lockbroker_names ;;
			esac ;;
		esac
		;;
	*)
		case $cur in
		-*)
			case $verb in
			drain) options='--wait --off --json --help' ;;
			ls) options='--all --watch --json --help' ;;
			metrics) options='--textfile --help' ;;
			check) options='--lock --json --help' ;;
			http) options='--listen --host --anywhere --help' ;;
			*) options='--json --help' ;;
			esac
			COMPREPLY=($(compgen -W "$options" -- "$cur"))
			;;
		*)
			case $verb in
			info) COMPREPLY=($(compgen -W 'server clients locks session zookeeper audit limits stats' -- "$cur")) ;;
			access) if [ "$prev" = access ]; then COMPREPLY=($(compgen -u -- "$cur")); else _lockbroker_names; fi ;;
			leader | observe | ls | who | why | limit | revoke | force-unlock) [ -n "$name" ] || _lockbroker_names ;;
			esac
			;;
		esac
		;;
	esac
}

complete -F _lockbroker lockbroker
