/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Model of waits for memory: frees, waiters and the caches between them. Memory consists
 * of pieces of equal size. Two contexts have a piece each. A context frees its piece into
 * its cache, to the carveout, or by a handoff to a waiter, which may refuse the piece. Two
 * calls wait for a piece each, and the second may give up. A request takes a piece for a
 * moment, and gives it back when it fails.
 *
 * A step under a lock is one atomic step: under the lock of the carveout (memory), of a
 * context (its cache), or of all waiters (the queue).
 *
 * When no process can make a step, the model checks that no call sleeps while a piece is
 * free or cached, that no piece is promised, and that no piece is lost.
 */
#ifndef BUG
#define BUG 0 /* 1 to 8: a mistake that the model must find */
#endif

#define WAITERS 2
#define HOLDERS 2

mtype = { NONE, AWAKE, ASLEEP, SERVED };

byte memory; /* pieces that are free */
byte cached[HOLDERS]; /* pieces in a context's cache */
byte waiting; /* accmem_waiters.nr */
byte seq, promised, tries;
mtype state[WAITERS] = NONE;
byte seen[WAITERS];
byte ended[WAITERS]; /* serial number of the last attempt that failed */
bool served[WAITERS], gave_up[WAITERS];

/* wake waiters; under the lock of all waiters */
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

/* a failed request gives back a piece: waiters that may have missed it try again */
inline memory_returned(since)
{
	byte k = 0;

	atomic {
		do
		:: k < WAITERS ->
			if
			:: state[k] == AWAKE || ended[k] > since ->
				seen[k] = seq - 1
			:: else
			fi;
			k++
		:: else -> break
		od;
		run_queue()
	}
}

proctype taker()
{
	byte since;
	bool has;

	since = tries;
	atomic { /* under the carveout's lock */
		has = memory > 0;
		if
		:: has -> memory--
		:: else
		fi
	}
	if
	:: has ->
		memory++;
		if
		:: waiting > 0 && BUG != 8 -> memory_returned(since)
		:: else
		fi
	:: else
	fi
}

/* handoff to the first sleeper; under the lock of all waiters and the carveout's lock */
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
	:: true /* the piece does not fit the request */
	fi;
	if
	:: given
	:: !given && !keeps && BUG != 2 ->
		memory++; /* under the carveout's lock */
		memory_freed()
	:: !given && !keeps && BUG == 2 -> /* wakes waiters before the piece is free */
		memory_freed();
		memory++
	:: else
	fi
}

/* drain the caches, each under the lock of its context */
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

/* allocate a piece under the carveout's lock */
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

/* free a piece that a handoff gave, and try as any other request */
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
	:: BUG == 4 -> try(me) /* tries first, and is counted as a waiter only afterwards */
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
		:: BUG == 6 -> seen[me] = seq /* ignores the frees since its attempt */
		:: else
		fi;
		state[me] = ASLEEP;
		promised--;
		tries++;
		ended[me] = tries;
		run_queue()
	}
	do
	:: state[me] == AWAKE -> goto again
	:: state[me] == SERVED -> goto accept
	:: atomic { /* a deadline or a signal; a wake-up has priority */
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
		run taker();
		run waiter(0);
		run waiter(1)
	}
	/* no process can make a step; calls may sleep */
	timeout;
	assert(!(state[0] == ASLEEP && memory + cached[0] + cached[1] > 0));
	assert(!(state[1] == ASLEEP && memory + cached[0] + cached[1] > 0));
	assert(state[0] != AWAKE && state[1] != AWAKE);
	assert(state[0] != SERVED && state[1] != SERVED);
	assert(promised == 0);
	assert(memory + cached[0] + cached[1] + served[0] + served[1] == HOLDERS)
}
