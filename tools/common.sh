# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What every script of the project shares: where things are, how to say what
# is going on, and how to take a lock. Sourced, never run.

shopt -s inherit_errexit

ACCMEM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
ACCMEM_BUILD=$ACCMEM_ROOT/build
ACCMEM_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/accmem
ACCMEM_JOBS=${ACCMEM_JOBS:-$(nproc)}
export ACCMEM_ROOT ACCMEM_BUILD ACCMEM_CACHE ACCMEM_JOBS

# Compilers are found there first, once tools/deps has made the links to tools/compile.
[[ $PATH = "$ACCMEM_BUILD/compilers:"* ]] || PATH=$ACCMEM_BUILD/compilers:$PATH

# say TEXT: progress, on stderr so that a script's output stays its own.
say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# every SECONDS COMMAND...: for the background, until it is told to end, with its sleep:
# what that inherits may be an output that somebody reads to its end.
every()
{
	local seconds=$1

	shift
	trap 'kill $! 2>/dev/null || true; exit' TERM
	while sleep "$seconds" & wait $!; do
		"$@"
	done
}

# die TEXT: give up with a reason.
die()
{
	say "$*"
	exit 1
}

# take_lock FILE: sets lock_fd to what holds the lock, until it is closed here and
# in all processes that have inherited it.
take_lock()
{
	mkdir -p "$(dirname "$1")"
	exec {lock_fd}>"$1"
	if ! flock -n "$lock_fd"; then
		say "waiting for ${1##*/}"
		flock "$lock_fd"
	fi
}

# with_lock FILE COMMAND...: run one at a time over all processes. The lock
# goes with the process, so nothing stale is left behind by a kill. To be
# called where a failure ends the script: after `||` or `if` the shell would
# go on in the middle of the command.
with_lock()
{
	local lock_fd

	take_lock "$1"
	shift
	# Background children of the command must not inherit the lock.
	"$@" {lock_fd}>&-
	exec {lock_fd}>&-
}

# logged FILE COMMAND...: keep the output of a long command in a file and
# show the end of it when the command fails.
logged()
{
	local log=$1

	shift
	mkdir -p "$(dirname "$log")"
	if ! "$@" >"$log" 2>&1 </dev/null; then
		say "failed: $*"
		say "the last lines of $log:"
		tail -n 40 "$log" >&2
		return 1
	fi
}
