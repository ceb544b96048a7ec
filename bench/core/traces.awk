# SPDX-License-Identifier: GPL-2.0
#
# Make a C header from traces. Sizes are converted to granules; ids are unchanged.
#
#   awk -f traces.awk TRACE...

function end_trace() {
	if (name != "")
		printf "};\n\n"
}

FNR == 1 {
	end_trace()
	name = FILENAME
	sub(".*/", "", name)
	sub("[.]trace$", "", name)
	names[++nr] = name
	if (nr == 1)
		print "/* Made by traces.awk */"
	printf "static const struct bench_event bench_trace_%s[] = {\n", name
}

/^[af] / {
	printf "\t{ %d, %d },\n", $2, $1 == "a" ? int(($3 + 4095) / 4096) : 0
	if ($2 >= ids[name])
		ids[name] = $2 + 1
}

END {
	end_trace()
	printf "static const struct bench_workload bench_traces[] = {\n"
	for (i = 1; i <= nr; i++) {
		name = names[i]
		printf "\t{ .name = \"%s\",\n", name
		printf "\t  .event = bench_trace_%s,\n", name
		printf "\t  .nr_events = ARRAY_SIZE(bench_trace_%s),\n", name
		printf "\t  .nr_ids = %d },\n", ids[name]
	}
	print "};"
}
