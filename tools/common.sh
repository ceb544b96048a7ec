# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Definitions that the scripts of the project share: paths, messages and locks. Sourced,
# not run.

shopt -s inherit_errexit

ACCMEM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
ACCMEM_BUILD=$ACCMEM_ROOT/build
ACCMEM_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/accmem
ACCMEM_JOBS=${ACCMEM_JOBS:-$(nproc)}
export ACCMEM_ROOT ACCMEM_BUILD ACCMEM_CACHE ACCMEM_JOBS

# PATH has this directory first. It has links to tools/compile, made by tools/deps.
[[ $PATH = "$ACCMEM_BUILD/compilers:"* ]] || PATH=$ACCMEM_BUILD/compilers:$PATH
# The compiler for arm64, which tools/deps unpacks into the cache
[[ $PATH = *:"$ACCMEM_CACHE/current/cross-arm64/bin" ]] ||
	PATH+=:$ACCMEM_CACHE/current/cross-arm64/bin

# say TEXT: report progress on stderr, apart from the output of a script
say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# every SECONDS COMMAND...: run the command again and again, in the background, until a
# signal ends it. The signal also ends the sleep, which may have inherited an output that
# another program reads to its end.
every()
{
	local seconds=$1

	shift
	trap 'kill $! 2>/dev/null || true; exit' TERM
	while sleep "$seconds" & wait $!; do
		# the script was killed
		kill -0 $$ 2>/dev/null || exit
		"$@"
	done
}

# die TEXT: exit with a reason
die()
{
	say "$*"
	exit 1
}

# sources PART...: list the sources of parts of the project, without the objects of a
# kernel's build in the project's own directory, and without the programs of lib/host.
# Conditions of find may follow
sources()
{
	(cd "$ACCMEM_ROOT" && find "$@" -type f ! -path '*/host/*' ! -name '.*' \
		! -name '*.o' ! -name '*.ko' ! -name '*.mod' ! -name '*.mod.c')
}

# link_sources DIR PART...: make links in DIR to the sources of the parts
link_sources()
{
	local dir=$1 file files

	shift
	mapfile -t files < <(sources "$@" | sed 's,^,./,')
	mkdir -p "$dir"
	(cd "$dir" && mkdir -p "${files[@]%/*}")
	find "$dir" -xtype l -delete
	for file in "${files[@]}"; do
		[ "$dir/$file" -ef "$ACCMEM_ROOT/$file" ] ||
			ln -sf "$ACCMEM_ROOT/${file#./}" "$dir/$file"
	done
}

# take_lock FILE: take a lock, and set lock_fd to its descriptor. The lock is released
# when this shell and all processes that have inherited the descriptor have closed it.
take_lock()
{
	mkdir -p "$(dirname "$1")"
	exec {lock_fd}>"$1"
	if ! flock -n "$lock_fd"; then
		say "waiting for ${1##*/}"
		flock "$lock_fd"
	fi
}

# with_lock FILE COMMAND...: run the command with the lock. The end of the process
# releases the lock, also after a kill. Do not call it after `||` or in an `if`: there
# the shell ignores a failure in the middle of the command.
with_lock()
{
	local lock_fd

	take_lock "$1"
	shift
	# Background children of the command must not inherit the lock.
	"$@" {lock_fd}>&-
	exec {lock_fd}>&-
}

# logged FILE COMMAND...: write the output of a long command to a file; show the end of
# it if the command fails
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
