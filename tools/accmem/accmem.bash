# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of the command accmem, for bash.

# Print the devices.
_accmem_devices()
{
	local dir

	for dir in /sys/class/accmem/accmem*; do
		[ ! -e "$dir" ] || echo "${dir##*/}"
	done
}

# Print the limits, with the equal sign that follows.
_accmem_limits()
{
	local file

	for file in /sys/module/accmem/parameters/{max_*,overdue_ms,waiter_reserve_ms}; do
		[ ! -e "$file" ] || echo "${file##*/}="
	done
}

# Print the words that may follow the words of the command line.
_accmem_words()
{
	case "${COMP_WORDS[1]}:$COMP_CWORD" in
	*:1) echo "who top map limits devices reset retire run --json --watch --help" ;;
	who:*) echo "--json --watch --help" && pgrep . ;;
	top:*) echo "--watch= --help" ;;
	map:*) echo "--watch --help" && _accmem_devices ;;
	limits:*) echo "--json --watch --help" && _accmem_limits ;;
	devices:2) echo "add remove --json --watch --help" ;;
	devices:3) [ "${COMP_WORDS[2]}" != add ] || echo "emulated phys" ;;&
	devices:*) [ "${COMP_WORDS[2]}" != remove ] || echo "--force" "$(_accmem_devices)" ;;
	reset:*) echo "--force --help" && _accmem_devices ;;
	retire:2) echo "--help" && _accmem_devices ;;
	esac
}

_accmem()
{
	local word=${COMP_WORDS[COMP_CWORD]}

	mapfile -t COMPREPLY < <(compgen -W "$(_accmem_words)" -- "$word")
	[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}

complete -o default -F _accmem accmem
