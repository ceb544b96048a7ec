// SPDX-License-Identifier: MIT
/* A pair of CTAs on two SMs allocates columns, and so does a warp of a third. */
#include <tcgen05.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

static const uint32_t COLUMNS = 256;

/* Each of the two waits for the other in alloc, and again where columns ends. */
static void use(tcgen05::Cta &cta)
{
	tcgen05::Columns columns = cta.alloc(COLUMNS);
	const accmem_cta_query query = cta.query();
	const tcgen05::Map map(cta);

	printf("CTA %u of SM %u: %u columns at column %u, all %s\n", query.rank,
	       query.sm, columns.count(), columns.column(),
	       map.owners(query.id, columns.column(), COLUMNS) == TCGEN05_SELF ?
		       "its own" :
		       "another's");
}

static void run_pair(const tcgen05::Context &context)
{
	const tcgen05::Launch launch(context, 1, 2);
	std::vector<tcgen05::Cta> pair = launch.cluster(0, { 0, 1 });
	std::thread peer(use, std::ref(pair[1]));

	use(pair[0]);
	peer.join();
}

static void run_warp(const tcgen05::Context &context)
{
	const tcgen05::Launch launch(context, 2);
	tcgen05::Cta cta = launch.cta(0), other = launch.cta(0, 1);
	tcgen05::Warp warp(cta);
	uint32_t address;

	warp.alloc_all(&address, COLUMNS);
	printf("warp: %u columns at column %u\n", COLUMNS,
	       tcgen05_column(address));
	printf("another CTA %s all 512 now\n",
	       other.try_alloc(512) ? "can have" : "cannot have");
	warp.dealloc_all(address, COLUMNS);
	warp.relinquish_all();
	printf("another CTA %s all 512 now\n",
	       other.try_alloc(512) ? "can have" : "cannot have");
}

int main(int argc, char **argv)
{
	tcgen05_config config = {};

	config.nr_sms = 2;
	try {
		const tcgen05::Context context(argc > 1 ? argv[1] : nullptr,
					       config);

		run_pair(context);
		run_warp(context);
	} catch (const std::exception &error) {
		fprintf(stderr, "accmem-tcgen05: %s\n", error.what());
		return EXIT_FAILURE;
	}
	return 0;
}
