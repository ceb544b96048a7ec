/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Model of sleeping calls on Tensor Memory: sleep, wake-up, interruption and restart, as
 * in call.c, sleep.c and wake.c of driver/tmem/.
 *
 * The arbiter of the model is the simplest with all kinds of waits: an SM has one unit,
 * and requests are granted in their order. The rules of the real arbiter are checked with
 * its own code, in every state of small configurations (lib/host/columns).
 *
 * There are three CTAs on one SM, or (PAIRED) a pair on SMs 0 and 1 and a CTA on SM 1. Each
 * makes CALLS calls, CTA 0 one more, and exits. A step under the driver's lock is one
 * atomic step. The test whether a call is done, the sleep, and the store of an address are
 * steps of their own. A grant is a reservation. Each caller confirms it after the store of
 * the address, or refuses it (LOSES). After a signal, a sleeper restarts its call, makes
 * another call, or does neither: then a timer drops the call. With THREADS, another thread
 * of CTA 0 relinquishes at any time.
 *
 * Spin checks:
 *
 * - there is no invalid end state, as a sleeper that is not woken, or a reservation that
 *   is not freed;
 * - the assertions: no unit is granted twice; an address is valid only if it was stored;
 *   a call that has ended leaves no state; requests are granted in the order in which
 *   their calls began, regardless of signals.
 */
#ifndef PAIRED
#define PAIRED 0
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef LOSES
#define LOSES 0 /* an address cannot be stored */
#endif
#ifndef THREADS
#define THREADS 0
#endif
#ifndef BUG
#define BUG 0 /* 1 to 8: a mistake that the model must find */
#endif

/* calls of a CTA */
#define ALLOC 1
#define DEALLOC 2
#define LEAVE 3

#define NOBODY 15
#define NR 3
#define IN_PAIR(c) (PAIRED && (c) < 2)
#define PEER(c) (1 - (c))
#define HOME(c) (PAIRED && (c) > 0 -> 1 : 0)
#define HAS_PEER(c) (IN_PAIR(c) && !gone[PEER(c)])
/* the CTA in whose name a request is queued */
#define REQUEST(c) (IN_PAIR(c) -> 0 : (c))

#define IS_RESERVED(c) (call[c] == RESERVED || call[c] == STORED)
#define HAS_JOINED(c) (call[c] == QUEUED || IS_RESERVED(c))
#define IN_ALLOC(c) (call[c] == JOIN_ALLOC || HAS_JOINED(c))
#define IS_OVER(c) (call[c] == NONE || call[c] == DONE)
/* the caller has to sleep */
#define IS_WAITING(c) (!IS_OVER(c) && call[c] != RESERVED)

mtype:call = { NONE, JOIN_ALLOC, JOIN_DEALLOC, QUEUED, RESERVED, STORED, DONE };
mtype:wait = { IDLE, ASLEEP, INTERRUPTED };

/* the arbiter */
byte owner[2] = NOBODY; /* CTA that has the unit of an SM, allocated or reserved */
mtype:call call[NR] = NONE;
bool held[NR], relinquished[NR], gone[NR];
bit at[NR], stored[NR]; /* the reserved address, and the stored address */
bit next_address;
byte queue[NR], queued;

/* the driver */
mtype:wait wait[NR] = IDLE;
bool done[NR]; /* the sleeper was woken because its call is done */
bool running[NR] = true; /* its task may run */
bool armed[NR]; /* the timer is armed */

/* requests in the order in which their calls began to wait for columns */
byte order[NR], ordered;

/* temporary variables, used in atomic steps only */
byte i;
bool ok;

/* --- wake-up -------------------------------------------------------------- */

/* wake_one() */
inline tell(c)
{
	if
	:: wait[c] == ASLEEP && !(BUG == 1 && call[c] == RESERVED) ->
		done[c] = true;
		running[c] = true
	:: else
	fi
}

inline finish(c)
{
	call[c] = DONE;
	tell(c)
}

/* --- the arbiter ---------------------------------------------------------- */

/* remove r from a list, if it is in the list */
#define REMOVE(list, nr, r) \
	i = 0; \
	do \
	:: i == nr -> break \
	:: i < nr && list[i] == (r) -> break \
	:: else -> i++ \
	od; \
	if \
	:: i < nr -> \
		do \
		:: i + 1 == nr -> break \
		:: else -> list[i] = list[i + 1]; i++ \
		od; \
		nr--; \
		list[nr] = 0 \
	:: else \
	fi; \
	i = 0

inline count_no_more(c)
{
	REMOVE(order, ordered, REQUEST(c))
}

inline count_from_here(c)
{
	count_no_more(c);
	order[ordered] = REQUEST(c);
	ordered++
}

inline reserve(c)
{
	assert(owner[HOME(c)] == NOBODY);
	owner[HOME(c)] = c;
	at[c] = next_address;
	call[c] = RESERVED;
	tell(c)
}

/* after each call: grant requests in their order, and reset temporary variables */
inline run_queue()
{
	do
	:: queued && owner[HOME(queue[0])] == NOBODY &&
	   (!IN_PAIR(queue[0]) || owner[1] == NOBODY) ->
		assert(order[0] == queue[0]);
		next_address = 1 - next_address;
		reserve(queue[0]);
		if
		:: IN_PAIR(queue[0]) -> reserve(PEER(queue[0]))
		:: else
		fi;
		count_no_more(queue[0]);
		REMOVE(queue, queued, queue[0])
	:: else -> break
	od;
	ok = false
}

inline unreserve(c)
{
	if
	:: IS_RESERVED(c) -> owner[HOME(c)] = NOBODY
	:: else
	fi
}

/* undo the progress of an alloc, for a pair of the allocs of both peers */
inline withdraw(c)
{
	REMOVE(queue, queued, REQUEST(c));
	unreserve(c);
	if
	:: IN_PAIR(c) -> unreserve(PEER(c))
	:: else
	fi
}

inline give_back(c)
{
	if
	:: held[c] ->
		assert(owner[HOME(c)] == c);
		owner[HOME(c)] = NOBODY;
		held[c] = false
	:: else
	fi
}

/* newly: the call is new, and not made again after a signal */
inline do_alloc(c, newly)
{
	if
	:: relinquished[c] || (IN_PAIR(c) && gone[PEER(c)]) -> call[c] = DONE
	:: else ->
		if
		:: IN_PAIR(c) && call[PEER(c)] == JOIN_DEALLOC ->
			finish(PEER(c));
			call[c] = DONE
		:: IN_PAIR(c) && IS_OVER(PEER(c)) ->
			call[c] = (relinquished[PEER(c)] -> DONE : JOIN_ALLOC)
		:: else ->
			call[c] = QUEUED;
			queue[queued] = REQUEST(c);
			queued++;
			if
			:: IN_PAIR(c) -> call[PEER(c)] = QUEUED
			:: else
			fi;
			if
			:: newly -> count_from_here(c)
			:: else
			fi
		fi
	fi
}

inline do_dealloc(c)
{
	if
	:: IN_PAIR(c) && gone[PEER(c)] -> call[c] = DONE
	:: HAS_PEER(c) && call[PEER(c)] == JOIN_ALLOC ->
		finish(PEER(c));
		call[c] = DONE
	:: HAS_PEER(c) && IS_OVER(PEER(c)) -> call[c] = JOIN_DEALLOC
	:: else ->
		if
		:: IN_PAIR(c) -> give_back(PEER(c)); finish(PEER(c))
		:: else
		fi;
		give_back(c);
		call[c] = DONE
	fi
}

/* complete an alloc if all callers have stored their address */
inline commit(c)
{
	ok = !IN_PAIR(c) || call[PEER(c)] == STORED;
	if
	:: ok ->
		assert(stored[c] == at[c]);
		held[c] = true;
		call[c] = DONE;
		if
		:: IN_PAIR(c) ->
			assert(stored[PEER(c)] == at[PEER(c)]);
			held[PEER(c)] = true;
			finish(PEER(c))
		:: else
		fi
	:: else
	fi
}

/* good: the address was stored, not refused */
inline do_confirm(c, where, good)
{
	if
	:: !IS_OVER(c) && !good ->
		if
		:: HAS_JOINED(c) ->
			withdraw(c);
			count_no_more(c);
			if
			:: IN_PAIR(c) -> finish(PEER(c))
			:: else
			fi
		:: else
		fi;
		call[c] = DONE
	:: call[c] == RESERVED && good && (at[c] == where || BUG == 5) ->
		stored[c] = where;
		call[c] = STORED;
		commit(c)
	:: else
	fi
}

inline do_relinquish(c)
{
	if
	:: HAS_PEER(c) && IN_ALLOC(PEER(c)) && !HAS_JOINED(c) ->
		finish(PEER(c))
	:: else
	fi;
	if
	:: HAS_JOINED(c) ->
		withdraw(c);
		count_no_more(c);
		if
		:: IN_PAIR(c) -> finish(PEER(c))
		:: else
		fi;
		finish(c)
	:: call[c] == JOIN_ALLOC -> finish(c)
	:: else
	fi;
	relinquished[c] = true
}

/* c gives up its wait; a peer that had joined waits for c again */
inline do_cancel(c, for_good)
{
	if
	:: HAS_JOINED(c) ->
		withdraw(c);
		if
		:: for_good -> count_no_more(c)
		:: else
		fi;
		if
		:: IN_PAIR(c) -> call[PEER(c)] = JOIN_ALLOC
		:: else
		fi
	:: else
	fi;
	call[c] = DONE
}

inline do_exit(c)
{
	gone[c] = true;
	if
	:: IN_PAIR(c) && BUG != 8 && (call[PEER(c)] == JOIN_ALLOC ||
				      call[PEER(c)] == JOIN_DEALLOC) ->
		finish(PEER(c))
	:: else
	fi;
	give_back(c);
	call[c] = DONE
}

/* --- the CTAs ------------------------------------------------------------- */

inline choose()
{
	if
	:: op = LEAVE
	:: calls < CALLS + (c == 0) && !held[c] -> op = ALLOC
	:: calls < CALLS + (c == 0) && held[c] -> op = DEALLOC
	fi;
	calls++
}

inline do_call(c)
{
	if
	:: op == ALLOC -> do_alloc(c, true)
	:: op == DEALLOC -> do_dealloc(c)
	:: else -> do_exit(c)
	fi;
	run_queue()
}

proctype cta(byte c)
{
	byte calls = 0, op = 0;
	bit first = 0;
	bool signal = false;

call_new:
	atomic { choose(); d_step { do_call(c) } };

call_on:
	if
	:: d_step { IS_OVER(c) -> call[c] = NONE; stored[c] = 0; at[c] = 0 };
		assert(wait[c] == IDLE && running[c]);
		if
		:: op == LEAVE -> goto over
		:: else -> goto call_new
		fi
	:: d_step { call[c] == RESERVED -> first = at[c] };
		goto store
	/* accmem_cta_sleep() */
	:: d_step { IS_WAITING(c) -> wait[c] = ASLEEP; done[c] = false }
	fi;
	/* choose whether a signal will interrupt the sleep, at any time */
	if
	:: signal = true
	:: signal = false
	fi;

sleep:
	if
	:: BUG == 2 ->
		if
		:: done[c] -> goto leave
		:: !done[c]
		fi;
		running[c] = false
	:: else ->
		running[c] = false;
		if
		:: done[c] -> goto leave
		:: !done[c]
		fi
	fi;
	if
	:: running[c] -> goto sleep
	:: signal -> goto interrupted
	fi;

leave:
	/* the reason of the wake-up may be gone: then the call sleeps again */
	atomic { wait[c] = IDLE; done[c] = false; running[c] = true };
	goto call_on;

interrupted:
	atomic {
		wait[c] = IDLE;
		done[c] = false;
		running[c] = true;
		signal = false;
		if
		:: !IS_WAITING(c) && BUG != 4 -> goto call_on
		:: !IS_WAITING(c) && BUG == 4 -> call[c] = DONE; goto call_on
		/* the call is not restarted */
		:: IS_WAITING(c) ->
			d_step { do_cancel(c, true); run_queue() };
			goto call_on
		/* sleep_leave_behind() */
		:: IS_WAITING(c) -> wait[c] = INTERRUPTED; armed[c] = true
		fi
	};
	if
	:: goto back
	/* the task returns only after the timer has dropped the call */
	:: true ->
		d_step { wait[c] == IDLE || IS_OVER(c) -> wait[c] = IDLE };
		goto call_on
	fi;

back:
	if
	:: d_step { wait[c] == IDLE };
		goto call_on
	/* accmem_cta_resume(); BUG 3 queues the request again */
	:: d_step {
		wait[c] == INTERRUPTED ->
			wait[c] = IDLE;
			if
			:: BUG == 3 && IN_ALLOC(c) ->
				do_cancel(c, false);
				do_alloc(c, false)
			:: else
			fi;
			run_queue()
		};
		goto call_on
	/* another call or the exit of the CTA: sleep_drop() */
	:: d_step {
		wait[c] == INTERRUPTED ->
			wait[c] = IDLE;
			if
			:: !IS_OVER(c) -> do_cancel(c, true)
			:: else
			fi;
			run_queue()
		};
		goto call_on
	fi;

store:
	if
	:: d_step { do_confirm(c, first, true); first = 0; run_queue() }
	:: d_step { LOSES -> do_confirm(c, first, false); first = 0; run_queue() }
	fi;
	goto call_on;

over:
	skip
}

/* accmem_cta_expired(); it may run late, after the restart or during another call */
proctype timer(byte c)
{
end_timer:
	do
	:: d_step {
		armed[c] ->
			armed[c] = false;
			if
			:: (wait[c] == INTERRUPTED || BUG == 6) && !IS_OVER(c) &&
			   !(BUG == 7 && IS_RESERVED(c)) ->
				wait[c] = IDLE;
				do_cancel(c, true)
			:: else
			fi;
			run_queue()
		}
	od
}

/* another thread of CTA 0 */
proctype thread()
{
	if
	:: d_step { !gone[0] -> do_relinquish(0); run_queue() }
	:: gone[0]
	fi
}

init {
	atomic {
		run cta(0);
		run cta(1);
		run cta(2);
		run timer(0);
		run timer(1);
		run timer(2);
		if
		:: THREADS -> run thread()
		:: else
		fi
	}
	/* all processes but the timers have ended */
	gone[0] && gone[1] && gone[2];
	assert(owner[0] == NOBODY && owner[1] == NOBODY && !queued && !ordered)
}
