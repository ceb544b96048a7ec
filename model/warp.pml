/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Model of the warp-collective calls of libaccmem. Three lanes make one call after
 * another, each with an operand, and may leave the warp instead of a call. A step under the
 * warp's lock is one atomic step. The lane that runs the call of a round does so without
 * the lock.
 *
 * The model checks, for all orders and operands, that no call waits without end. If the
 * lanes of a round disagree, all of them get an error (P15), also if a lane has left (P16).
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef BUG
#define BUG 0 /* 1 and 2: a mistake that the model must find */
#endif

#define LANES 3
#define HERE(l) (gone[l] || inside[l])
#define ALL_HERE (HERE(0) && HERE(1) && HERE(2))
#define SOMEBODY_INSIDE (inside[0] || inside[1] || inside[2])
#define SOMEBODY_GONE (gone[0] || gone[1] || gone[2])

mtype = { OK, EILSEQ, ESRCH };

bool gone[LANES], inside[LANES], differ, running, over;
byte waiting, operand;
mtype result = OK;
bool brought[2]; /* operands that lanes of this round have */

inline end_round(r)
{
	result = r;
	over = true
}

/* enter a round, under the lock; the last lane ends the round, or runs its call */
inline enter(l)
{
	if
	:: !SOMEBODY_INSIDE -> operand = op
	:: SOMEBODY_INSIDE && operand != op -> differ = true
	:: else
	fi;
	brought[op] = true;
	inside[l] = true;
	waiting++;
	if
	:: BUG == 1 && differ -> end_round(EILSEQ) /* before all lanes have entered */
	:: BUG != 1 && differ && ALL_HERE -> end_round(EILSEQ)
	:: !differ && ALL_HERE -> running = true; runs = true
	:: else
	fi
}

inline return_from_round()
{
	assert(!(brought[0] && brought[1]) || result == EILSEQ);
	assert(result != EILSEQ || (brought[0] && brought[1]));
	assert(result != ESRCH || SOMEBODY_GONE);
	waiting--;
	if
	:: !waiting ->
		inside[0] = false;
		inside[1] = false;
		inside[2] = false;
		brought[0] = false;
		brought[1] = false;
		differ = false;
		over = false
	:: else
	fi
}

inline leave(l)
{
	gone[l] = true;
	if
	:: SOMEBODY_INSIDE && !running && !over && BUG != 2 ->
		if
		:: !differ -> end_round(ESRCH)
		:: differ && ALL_HERE -> end_round(EILSEQ)
		:: else
		fi
	:: else
	fi
}

proctype lane(byte l)
{
	byte calls = 0, op = 0;
	bool runs = false, enters = false;

	do
	:: calls == CALLS -> break
	:: calls < CALLS -> atomic { leave(l) }; break
	:: calls < CALLS ->
		calls++;
		if
		:: op = 0
		:: op = 1
		fi;
		atomic {
			!over;
			enters = differ || !SOMEBODY_GONE;
			if
			:: enters -> enter(l)
			:: else /* ESRCH */
			fi
		};
		if
		:: runs -> atomic { running = false; runs = false; end_round(OK) }
		:: else
		fi;
		if
		:: enters -> atomic { over -> return_from_round() }
		:: else
		fi
	od
}

init {
	atomic {
		run lane(0);
		run lane(1);
		run lane(2)
	}
	_nr_pr == 1;
	assert(!waiting && !over && !running)
}
