# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of the command accmem, for bash.

# Print the words that may follow the words of the command line.
_accmem_words()
{
	case "${COMP_WORDS[1]}:$COMP_CWORD" in
	*:1) echo "who limits run --json --watch --help" ;;
	who:*) echo "--json --watch --help" && pgrep . ;;
	limits:*) echo "--json --watch --help" && _accmem_limits ;;
	esac
}

_accmem()
{
	local word=${COMP_WORDS[COMP_CWORD]}

	mapfile -t COMPREPLY < <(compgen -W "$(_accmem_words)" -- "$word")
	[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}

complete -o default -F _accmem accmem
