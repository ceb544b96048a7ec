# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A kernel tree for User Mode Linux 6.12 with the project in it, as
# drivers/misc/accmem: Debian's source through links, with the two files that
# must know of the project written anew. The tree and its objects stay in the
# cache for every copy of the project; what is built of the project itself goes
# when another copy comes. Sourced after common.sh.

# uml_paths: sets uml_source, uml_tree, uml_lock, and uml_objects for those of
# KUnit; whoever wants another configuration appends a word to it.
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

# link_all FROM TO: TO gets a link to everything in FROM.
link_all()
{
	mkdir -p "$2"
	find "$1" -mindepth 1 -maxdepth 1 -exec ln -sfnt "$2" {} +
}

# Under the lock: the tree, with this copy of the project in it.
uml_graft()
{
	local link=$uml_tree/drivers/misc/accmem config

	[ -e "$uml_tree/.grafted" ] || make_tree
	[ "$(readlink "$link")" != "$ACCMEM_ROOT" ] || return 0
	# By their times, files of this copy may be older than the objects. The
	# configuration is read again, and compared with what it was: without
	# that, all of the kernel would be built again.
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
	# kunit.py looks for the tree around the file that it really is.
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
