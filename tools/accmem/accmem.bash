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

# Print the words of a request.
_accmem_request()
{
	echo "CONTIGUOUS POPULATE TOP_DOWN RESIZABLE WAIT ROUND32 TAIL32 HIGH_BANDWIDTH \
		LOW_BANDWIDTH CARVEOUT ANY HUGE_FIRST HUGE_ONLY NORMAL_ONLY HUGE1G_ONLY WB WC UC DEVICE \
		HOST SHARED ALIGN= RESERVE=" && _accmem_devices
}

# Print the words that may follow the words of the command line.
_accmem_words()
{
	case "${COMP_WORDS[1]}:$COMP_CWORD" in
	*:1) echo "check who tmem top map limits devices explain bench record replay reset" \
		"retire cdi metrics run --json --watch --help" ;;
	check:*) echo "--json --report --help" && _accmem_devices ;;
	who:*) echo "--json --watch --help" && pgrep . ;;
	tmem:*) echo "--json --watch --help" && _accmem_devices ;;
	top:*) echo "--watch= --help" ;;
	map:*) echo "--owners --states --svg --watch --help" && _accmem_devices ;;
	limits:*) echo "--json --watch --help" && _accmem_limits ;;
	devices:2) echo "add remove --json --watch --help" ;;
	devices:3) [ "${COMP_WORDS[2]}" != add ] || echo "emulated phys" ;;&
	devices:*) [ "${COMP_WORDS[2]}" != remove ] || echo "--force" "$(_accmem_devices)" ;;
	explain:*) echo "--json --watch --help" && _accmem_request ;;
	bench:*) echo "--json --help" && _accmem_request ;;
	record:*)
		echo "--output --device --pid --buffer --tmem --context --columns --help" &&
			_accmem_devices
		;;
	replay:*) echo "--device --min-heap --owners --capacity --granule --map --placement" \
		"--shared --exclusive --relinquish-early --relinquish-never --bypass-bound" \
		"--grants --help" ;;
	reset:*) echo "--force --help" && _accmem_devices ;;
	cdi:2) echo "generate --help" ;;
	cdi:*) echo "--cdi-version --output --help" && _accmem_devices ;;
	metrics:*) echo "--output --help" ;;
	retire:2) echo "--help" && _accmem_devices ;;
	run:*) echo "--device --threshold --limit --stats --help" ;;
	esac
}

_accmem()
{
	local word=${COMP_WORDS[COMP_CWORD]}

	mapfile -t COMPREPLY < <(compgen -W "$(_accmem_words)" -- "$word")
	[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}

complete -o default -F _accmem accmem
