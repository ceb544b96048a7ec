# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A kernel tree for User Mode Linux 6.12 that contains the project as drivers/misc/accmem.
# The tree has links to Debian's source. The two files that name the project are written
# anew. The tree and its objects are in the cache, for every copy of the project. The
# objects of the project itself are removed when another copy uses the tree. Sourced after
# common.sh.

# uml_paths: set uml_source, uml_tree, uml_lock, and uml_objects, the objects of KUnit. A
# caller with another configuration appends a word to uml_objects
# shellcheck disable=SC2034 # for the caller
uml_paths()
{
	local key dir

	uml_source=$("$ACCMEM_ROOT/tools/deps" path source-6.12)
	key=$(sha256sum <<<"$uml_source")
	dir=$ACCMEM_CACHE/kunit/${key:0:12}
	uml_tree=$dir/tree
	uml_objects=$dir/objects
	uml_lock=$dir/lock
}

# link_all FROM TO: make a link in TO to each file in FROM
link_all()
{
	mkdir -p "$2"
	find "$1" -mindepth 1 -maxdepth 1 -exec ln -sfnt "$2" {} +
}

# Make the tree, and put this copy of the project into it. The caller holds the lock.
uml_graft()
{
	local link=$uml_tree/drivers/misc/accmem config

	[ -e "$uml_tree/.grafted" ] || make_tree
	[ "$(readlink "$link")" != "$ACCMEM_ROOT" ] || return 0
	# Files of this copy may be older than the objects of another copy, so the objects
	# are removed. The old time of auto.conf makes make read the configuration again and
	# compare it with the last one: otherwise make would build the whole kernel again.
	rm -rf "${uml_tree%/*}"/objects*/drivers/misc/accmem
	for config in "${uml_tree%/*}"/objects*/include/config/auto.conf; do
		[ ! -e "$config" ] || touch -d @0 "$config"
	done
	ln -sfn "$ACCMEM_ROOT" "$link"
}

make_tree()
{
	local tree=$uml_tree source=$uml_source
	local misc=$tree/drivers/misc

	rm -rf "$tree"
	link_all "$source" "$tree"
	rm "$tree/drivers"
	link_all "$source/drivers" "$tree/drivers"
	rm "$misc"
	link_all "$source/drivers/misc" "$misc"
	# kunit.py searches the tree from its own path without links, so it is a copy.
	rm "$tree/tools"
	link_all "$source/tools" "$tree/tools"
	rm "$tree/tools/testing"
	link_all "$source/tools/testing" "$tree/tools/testing"
	rm "$tree/tools/testing/kunit"
	cp -r "$source/tools/testing/kunit" "$tree/tools/testing/kunit"
	rm "$misc/Kconfig" "$misc/Makefile"
	sed '$i source "drivers/misc/accmem/Kconfig"' \
		"$source/drivers/misc/Kconfig" >"$misc/Kconfig"
	{
		cat "$source/drivers/misc/Makefile"
		echo 'obj-y += accmem/'
	} >"$misc/Makefile"
	touch "$tree/.grafted"
}
