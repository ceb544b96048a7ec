/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Waiting for memory: who frees, who waits, and the caches between them. A step under
 * a lock is one atomic step: of the carveout (memory), of a context (its cache), of all
 * waiters (the queue). Two calls wait for one piece each and may give up; two contexts
 * hold a piece each, which they free into their cache or to the carveout, or hand over
 * to who waits, who may find no use for it.
 *
 * What is checked: when all have come to rest, nobody sleeps while there is a piece
 * that it could have, nothing is promised to nobody, and no piece is lost.
 */
#ifndef BUG
#define BUG 0 /* 1 to 7: a mistake that the model must find */
#endif

#define WAITERS 2
#define HOLDERS 2

mtype = { NONE, AWAKE, ASLEEP, SERVED };

byte memory; /* pieces that are free */
byte cached[HOLDERS]; /* pieces in a context's cache */
byte waiting; /* accmem_nr_waiting */
byte seq, promised;
mtype state[WAITERS] = NONE;
byte seen[WAITERS];
bool served[WAITERS], gave_up[WAITERS];

/* under the lock of all waiters */
inline run_queue()
{
	byte n = 0;

	do
	:: n < WAITERS ->
		if
		:: state[n] == ASLEEP && seen[n] != seq && memory > promised ->
			state[n] = AWAKE;
			promised++
		:: else
		fi;
		n++
	:: else -> break
	od
}

inline memory_freed()
{
	bool present;

	present = waiting > 0;
	if
	:: present ->
		atomic {
			seq++;
			run_queue()
		}
	:: else
	fi
}

/* to the first who sleeps, under the lock of all waiters and the carveout's */
inline offer()
{
	atomic {
		if
		:: state[0] == ASLEEP ->
			state[0] = SERVED;
			given = true
		:: state[0] != ASLEEP && state[1] == ASLEEP ->
			state[1] = SERVED;
			given = true
		:: else
		fi
	}
}

proctype holder(byte me)
{
	bool keeps, given;

	/* FREE, under the context's lock */
	atomic {
		keeps = waiting == 0 || BUG == 1;
		if
		:: keeps -> cached[me]++
		:: else
		fi
	}
	if
	:: !keeps && waiting > 0 -> offer()
	:: true /* it has another size */
	fi;
	if
	:: given
	:: !given && !keeps && BUG != 2 ->
		memory++; /* under the carveout's lock */
		memory_freed()
	:: !given && !keeps && BUG == 2 -> /* asks before it gives */
		memory_freed();
		memory++
	:: else
	fi
}

/* empties the caches, each under its context's lock */
inline drain()
{
	byte h = 0;
	bool had;

	do
	:: h < HOLDERS ->
		atomic {
			had = cached[h] > 0;
			cached[h] = 0
		}
		if
		:: had ->
			memory++;
			memory_freed()
		:: else
		fi;
		h++
	:: else -> break
	od
}

inline leave(me)
{
	atomic {
		if
		:: state[me] == AWAKE -> promised--
		:: else
		fi;
		state[me] = NONE;
		waiting--;
		if
		:: BUG != 3 -> run_queue()
		:: else
		fi
	}
}

/* a piece under the carveout's lock */
inline try(me)
{
	atomic {
		if
		:: memory > 0 ->
			memory--;
			served[me] = true
		:: else
		fi
	}
}

/* of no use to it: it tries as any request does */
inline refuse(me)
{
	memory++;
	memory_freed();
	atomic {
		state[me] = AWAKE;
		promised++
	}
}

proctype waiter(byte me)
{
	if
	:: BUG == 4 -> try(me) /* and is counted afterwards only */
	:: else
	fi;
	if
	:: served[me] -> goto out
	:: else
	fi;
	atomic {
		waiting++;
		state[me] = AWAKE;
		promised++;
		seen[me] = seq
	}
	if
	:: BUG != 5 -> drain()
	:: else
	fi;
again:
	seen[me] = seq;
	if
	:: BUG != 4 -> try(me)
	:: else
	fi;
	if
	:: served[me] ->
		leave(me);
		goto out
	:: else
	fi;
	atomic {
		if
		:: BUG == 6 -> seen[me] = seq /* as if it had seen all of that */
		:: else
		fi;
		state[me] = ASLEEP;
		promised--;
		run_queue()
	}
	do
	:: state[me] == AWAKE -> goto again
	:: state[me] == SERVED -> goto accept
	:: atomic { /* a deadline, or a signal; to be woken counts more */
		state[me] == ASLEEP && me == 1 && !gave_up[me] ->
		gave_up[me] = true
	   };
	   goto give_up
	od;
give_up:
	atomic {
		if
		:: state[me] == AWAKE && BUG != 3 ->
			goto again
		:: state[me] == SERVED && BUG != 7 ->
			goto accept
		:: else -> leave(me)
		fi
	}
	goto out;
accept:
	if
	:: served[me] = true;
	   leave(me)
	:: refuse(me);
	   goto again
	fi;
out:
	skip
}

init {
	atomic {
		run holder(0);
		run holder(1);
		run waiter(0);
		run waiter(1)
	}
	/* nothing moves any more, and somebody may sleep */
	timeout;
	assert(!(state[0] == ASLEEP && memory + cached[0] + cached[1] > 0));
	assert(!(state[1] == ASLEEP && memory + cached[0] + cached[1] > 0));
	assert(state[0] != AWAKE && state[1] != AWAKE);
	assert(state[0] != SERVED && state[1] != SERVED);
	assert(promised == 0);
	assert(memory + cached[0] + cached[1] + served[0] + served[1] == HOLDERS)
}
