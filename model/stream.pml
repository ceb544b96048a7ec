/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Model of streams and of the frees that wait for them. The owner is a context with two
 * streams; its threads free MEMS buffers and allocate on the streams. A worker process has
 * the files of the streams, and signals positions. There are two fences of another driver,
 * and another tenant (TENANT), which allocates free memory. A gate is a dependency: a
 * position of a stream or a fence.
 *
 * A step under one of the driver's spinlocks is one atomic step, and so is a step that no
 * other process can see. Threads make CALLS calls each, the worker makes OPS calls, and
 * then they end, also if frees are pending. The owner's files are closed, the context's
 * file first or (DEATH) in any order. Fences signal at any time and in any order. In a
 * reset, the other driver signals all its fences at once, with an error. Without IMPORTS
 * there are no fences.
 *
 * With WAITS there are no buffers. WAITS=1: a thread waits for a position, and signals
 * interrupt it. WAITS=2: a process sleeps in poll(), and another calls WAIT with NONBLOCK.
 *
 * The model records the dependencies of each free and the events of streams and fences
 * itself, apart from the counts of the driver. It checks with these records:
 *
 * - memory becomes free, or is reused by another stream, only when all dependencies of its
 *   free have signalled: a position is reached, or cancelled after the claimed positions;
 * - at the end, when all fences have signalled, every buffer is free, every exported fence
 *   has signalled and no reference is left: no free is lost or finished twice;
 * - overdue memory is not freed before its dependencies have signalled;
 * - ALLOC on a stream returns the position of the free whose memory it reuses;
 * - an ALLOC that fails has finished all frees that were due when it began;
 * - WAIT returns 0 if the position is reached; it returns ECANCELED only for positions of
 *   userspace of an ended stream, after all claimed positions; and no call sleeps without
 *   end.
 */
#ifndef MEMS
#define MEMS 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef THREADS
#define THREADS 1
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef TENANT
#define TENANT 0
#endif
#ifndef WAITS
#define WAITS 0
#endif
#ifndef IMPORTS
#define IMPORTS 1 /* 2: imports into stream 0, and no other call of the worker */
#endif
#ifndef DEATH
#define DEATH 0
#endif
#ifndef LATE
#define LATE 0 /* memory may be overdue */
#endif
#ifndef BUG
#define BUG 0 /* 1 to 16: a mistake that the model must find */
#endif

#define STREAMS 2
#define FENCES 2
#define CLAIMS 2 /* maximum of the imports of a stream */
#define LAST 2 /* last position */

/* a gate: none (signalled), the position of a stream, or a fence */
#define OPEN 0
#define OF_STREAM(s) (1 + (s))
#define OF_FENCE(f) (1 + STREAMS + (f))
#define IS_STREAM(g) ((g) != OPEN && (g) <= STREAMS)
#define STREAM(g) ((g) - 1)
#define FENCE(g) ((g) - 1 - STREAMS)

#define PROMISED(m, s) promised[STREAMS * (m) + (s)]
#define AFTER(m, f) after[FENCES * (m) + (f)]
#define CLAIM(s, n) (CLAIMS * (s) + (n))
#define HAS_STEPS(s) (taken[s] < claims[s])
#define IS_PAST(s, p) \
	(reached[s] >= (p) || (ended[s] && (BUG == 3 || !HAS_STEPS(s))))

/*
 * Place of a buffer: published; in the hand of a call; in the tree of a stream; in the
 * callbacks of a fence; in a call's list of due frees; in the device's list of due frees;
 * its memory is free; its memory belongs to the other tenant.
 */
mtype:place = { NAMED, IN_HAND, IN_TREE, IN_FENCE, IN_LIST, DUE, FREE, TAKEN };
mtype:state = { LIVE, PENDING, OVERDUE, NONE };
mtype:result = { OK, EAGAIN, ECANCELED, EINTR };

/* buffers */
mtype:place place[MEMS] = (WAITS -> FREE : NAMED);
mtype:state state[MEMS] = (WAITS -> NONE : LIVE);
byte gate[MEMS], position[MEMS], gate2[MEMS], position2[MEMS];
byte list[MEMS]; /* process whose list has the buffer */

/* streams */
byte reached[STREAMS], claimed[STREAMS], files[STREAMS], inside[STREAMS];
bool ended[STREAMS], work[STREAMS];
byte claims[STREAMS], taken[STREAMS]; /* steps that were imported, and steps that are complete */
byte step_position[CLAIMS * STREAMS], step_fence[CLAIMS * STREAMS];
bool step_waits[CLAIMS * STREAMS], step_done[CLAIMS * STREAMS];
byte exported[STREAMS];
bool told[STREAMS]; /* the exported fence has signalled */

/* fences, the device's list of due frees, the context */
bool signalled[FENCES], failed[FENCES], error[STREAMS];
bool due_lock;
byte refs = 1; /* references to the context: files, and pending frees */
bool closed, gone;

/* records of the model: dependencies of frees, and events */
byte promised[MEMS * STREAMS];
bool after[MEMS * FENCES], owed[MEMS];
byte by_user[STREAMS];
bool over[STREAMS];

byte threads, running, busy; /* owner's threads; other processes; busy work items */
bool may_close;

/* sleepers in WAIT and in poll() */
bool in_queue[2], asleep[2], sleeps[2];
byte wanted, polled = 1, asked_last = 1;

/* temporary variables, used in atomic steps only */
byte i, j;
bool ok;

/* --- what is due ---------------------------------------------------------- */

/* assert that the fences of all claims of s up to position p have signalled */
inline assert_claims(s, p)
{
	j = 0;
	do
	:: j == claims[s] -> break
	:: else ->
		assert(signalled[step_fence[CLAIM(s, j)]]);
		if
		:: step_position[CLAIM(s, j)] >= (p) -> break
		:: else -> j++
		fi
	od;
	ok = j < claims[s]; /* p is a claimed position */
	j = 0
}

inline assert_come(s, p)
{
	if
	:: (p) <= by_user[s]
	:: else -> assert_claims(s, p); assert(ok || over[s])
	fi
}

/* assert that all dependencies of m, except on stream own, have signalled */
inline assert_due(m, own)
{
	i = 0;
	do
	:: i == STREAMS -> break
	:: else ->
		if
		:: i != own && PROMISED(m, i) -> assert_come(i, PROMISED(m, i))
		:: else
		fi;
		i++
	od;
	i = 0;
	do
	:: i == FENCES -> break
	:: else -> assert(!AFTER(m, i) || signalled[i]); i++
	od;
	i = 0
}

inline forget(m)
{
	PROMISED(m, 0) = 0;
	PROMISED(m, 1) = 0;
	AFTER(m, 0) = false;
	AFTER(m, 1) = false
}

/* --- buffers -------------------------------------------------------------- */

inline put_context()
{
	assert(refs && !gone);
	refs--;
	gone = !refs
}

/* free the memory: any context may allocate it */
inline give(m)
{
	assert_due(m, STREAMS);
	forget(m);
	place[m] = FREE;
	state[m] = NONE;
	owed[m] = false;
	gate[m] = OPEN;
	position[m] = 0;
	gate2[m] = OPEN;
	position2[m] = 0
}

/* the last dependency has signalled */
inline end_free(m)
{
	assert(place[m] == IN_HAND && (state[m] == PENDING || state[m] == OVERDUE));
	give(m);
	put_context()
}

/* add a dependency, under the context's lock; waits: the free is pending */
inline add_gate(m, g, p)
{
	assert(place[m] == IN_HAND && state[m] == LIVE);
	if
	:: IS_STREAM(gate[m]) && reached[STREAM(gate[m])] >= position[m] ->
		gate[m] = OPEN;
		position[m] = 0
	:: else
	fi;
	if
	:: g == OPEN
	:: g != OPEN && gate[m] == OPEN -> gate[m] = g; position[m] = p
	:: g != OPEN && gate[m] == g ->
		if
		:: position[m] < p -> position[m] = p
		:: else
		fi
	:: else ->
		assert(gate2[m] == OPEN);
		gate2[m] = g;
		position2[m] = p
	fi;
	waits = gate[m] != OPEN;
	if
	:: waits -> refs++; state[m] = PENDING
	:: else -> give(m)
	fi
}

/* the first dependency has signalled: go on to the next */
inline next_gate(m)
{
	gate[m] = (BUG == 13 -> OPEN : gate2[m]);
	position[m] = (BUG == 13 -> 0 : position2[m]);
	gate2[m] = OPEN;
	position2[m] = 0
}

/* wait for the first dependency, under the lock of its stream or fence */
inline wait_for(m)
{
	owed[m] = false;
	if
	:: IS_STREAM(gate[m]) &&
	   (BUG == 2 || !IS_PAST(STREAM(gate[m]), position[m])) ->
		place[m] = IN_TREE
	:: !IS_STREAM(gate[m]) && (BUG == 9 || !signalled[FENCE(gate[m])]) ->
		place[m] = IN_FENCE
	:: else ->
		next_gate(m);
		if
		:: gate[m] == OPEN -> end_free(m)
		:: else
		fi
	fi
}

/* continue a free until it waits or ends; then other processes may have m */
inline go_on(m)
{
	do
	:: d_step { wait_for(m); going = place[m] == IN_HAND };
	   if
	   :: going
	   :: else -> break
	   fi
	od;
	skip
}

/* finish the frees in the list of process who, one after the other */
inline finish(who)
{
	do
	:: d_step { MEMS > 0 && place[0] == IN_LIST && list[0] == who ->
		place[0] = IN_HAND;
		list[0] = 0;
		m = 0
	   };
	   go_on(m)
	:: d_step { MEMS > 1 && place[MEMS - 1] == IN_LIST &&
		    list[MEMS - 1] == who ->
		place[MEMS - 1] = IN_HAND;
		list[MEMS - 1] = 0;
		m = MEMS - 1
	   };
	   go_on(m)
	:: else -> break
	od;
	skip
}

/* --- streams -------------------------------------------------------------- */

/* wake WAIT if its position is reached or the stream has ended; always wake poll() */
inline wake(s)
{
	if
	:: s == 0 && in_queue[0] && (reached[0] >= wanted || ended[0]) ->
		asleep[0] = false
	:: else
	fi;
	if
	:: s == 0 && in_queue[1] -> asleep[1] = false
	:: else
	fi
}

/* move reached frees from the tree to the list of process who, or to the device's list */
inline flush(s, where, who)
{
	wake(s);
	i = 0;
	do
	:: i == MEMS -> break
	:: else ->
		if
		:: place[i] == IN_TREE && gate[i] == OF_STREAM(s) &&
		   IS_PAST(s, position[i]) ->
			place[i] = where;
			list[i] = who
		:: else
		fi;
		i++
	od;
	i = 0
}

/* the stream ends: userspace signals no more positions */
inline end_stream(s)
{
	d_step { ended[s] = true; over[s] = true };
	if
	:: BUG == 14
	:: else -> d_step { flush(s, IN_LIST, _pid) }
	fi;
	finish(_pid)
}

/* the last close waits for calls that use the file */
inline close_stream(s)
{
	if
	:: d_step { files[s] > 1 -> files[s]-- }
	:: d_step { files[s] == 1 && !inside[s] -> files[s] = 0 };
	   end_stream(s);
	   atomic { put_context() }
	fi
}

/* --- the owner ------------------------------------------------------------ */

/* choose the dependency of a FREE; the stream's file must be open */
inline choose_gate()
{
	if
	:: g = OPEN
	:: files[0] -> g = OF_STREAM(0); p = 1
	:: files[0] -> g = OF_STREAM(0); p = 2
	:: files[1] && IMPORTS < 2 -> g = OF_STREAM(1); p = 1
	:: IMPORTS -> g = OF_FENCE(0)
	fi
}

/* check without a lock: drop a dependency that has signalled */
inline look_at_gate()
{
	if
	:: IS_STREAM(g) && reached[STREAM(g)] >= p -> g = OPEN; p = 0
	:: g != OPEN && !IS_STREAM(g) && signalled[FENCE(g)] -> g = OPEN
	:: else
	fi
}

inline free()
{
	atomic {
		if
		:: m = 0
		:: MEMS > 1 -> m = MEMS - 1
		fi;
		choose_gate();
		asked = g;
		asked_position = p;
		look_at_gate()
	};
	d_step {
		waits = false;
		if
		:: place[m] == NAMED ->
			if
			:: IS_STREAM(asked) &&
			   PROMISED(m, STREAM(asked)) < asked_position ->
				PROMISED(m, STREAM(asked)) = asked_position
			:: asked != OPEN && !IS_STREAM(asked) ->
				AFTER(m, FENCE(asked)) = true
			:: else
			fi;
			place[m] = IN_HAND;
			add_gate(m, g, p)
		:: else /* ENOENT */
		fi;
		g = OPEN;
		p = 0;
		asked = OPEN;
		asked_position = 0
	};
	if
	:: waits -> go_on(m)
	:: else
	fi
}

/* set m to the latest free on s that has no other dependency, or to MEMS */
inline take_latest(s)
{
	m = MEMS;
	i = 0;
	do
	:: i == MEMS -> break
	:: else ->
		if
		:: place[i] == IN_TREE && gate[i] == OF_STREAM(s) &&
		   (gate2[i] == OPEN || BUG == 7) ->
			if
			:: m == MEMS -> m = i
			:: m < MEMS && position[m] <= position[i] -> m = i
			:: else
			fi
		:: else
		fi;
		i++
	od;
	i = 0;
	if
	:: m < MEMS -> place[m] = IN_HAND
	:: else
	fi
}

/* the caller reuses m: the free is not pending any more, but its dependency stays */
inline take_back(s)
{
	assert(state[m] == PENDING || state[m] == OVERDUE);
	assert_due(m, s);
	assert(position[m] == PROMISED(m, s));
	state[m] = LIVE;
	if
	:: BUG == 12
	:: else -> put_context()
	fi;
	if
	:: BUG == 1 -> gate[m] = OPEN; position[m] = 0
	:: else
	fi
}

/* ALLOC on s; it is undone if the answer cannot be written */
inline alloc()
{
	atomic {
		if
		:: files[0] -> s = 0
		:: files[1] -> s = 1
		:: else -> s = STREAMS
		fi;
		if
		:: s < STREAMS -> inside[s]++; d_step { take_latest(s) }
		:: else -> m = MEMS
		fi
	};
	if
	:: m == MEMS
	/* a page of m is in use: the free waits again */
	:: m < MEMS -> go_on(m)
	:: m < MEMS ->
		d_step { take_back(s) };
		if
		:: d_step { place[m] = NAMED }
		:: d_step {
			if
			:: BUG == 6 -> give(m); waits = false
			:: else -> add_gate(m, OPEN, 0)
			fi
		   };
		   if
		   :: waits -> go_on(m)
		   :: else
		   fi
		fi
	fi;
	atomic {
		if
		:: s < STREAMS -> inside[s]--
		:: else
		fi;
		s = 0;
		m = 0;
		waits = false
	}
}

/* close the context: end the streams, free the buffers, drop the file's reference */
inline close_context()
{
	closed = true;
	if
	:: files[0] -> end_stream(0)
	:: else
	fi;
	if
	:: files[1] -> end_stream(1)
	:: else
	fi;
	n = 0;
	do
	:: n == MEMS -> break
	:: else ->
		d_step {
			waits = false;
			if
			:: place[n] == NAMED ->
				place[n] = IN_HAND;
				if
				:: BUG == 8 -> give(n)
				:: else -> add_gate(n, OPEN, 0)
				fi
			:: else
			fi
		};
		if
		:: waits -> go_on(n)
		:: else
		fi;
		n++
	od;
	atomic { n = 0; m = 0; waits = false; put_context() }
}

/* another thread of the owner */
proctype thread()
{
	byte calls, m, s, g, p, asked, asked_position;
	bool waits, going;

	do
	:: calls == CALLS -> break
	:: calls < CALLS -> calls++; free()
	:: calls < CALLS -> calls++; alloc()
	od;
	threads--
}

/* the owner ends: its files are closed, with DEATH in any order */
proctype owner()
{
	byte m, n;
	bool waits, going, closes[STREAMS], closes_context;

	!threads && may_close;
	do
	:: !closes_context -> closes_context = true; close_context()
	:: !closes[0] && (DEATH || closes_context) ->
		closes[0] = true;
		close_stream(0)
	:: !closes[1] && (DEATH || closes[0]) ->
		closes[1] = true;
		close_stream(1)
	:: else -> break
	od;
	running--
}

/* --- the worker process --------------------------------------------------- */

inline signal(s, p)
{
	d_step {
		ok = !ended[s] && p > reached[s] && !HAS_STEPS(s);
		lastly = ok;
		if
		:: ok ->
			assert_claims(s, LAST);
			reached[s] = p;
			claimed[s] = p;
			by_user[s] = p
		:: else
		fi;
		ok = false
	};
	if
	:: lastly -> d_step { flush(s, IN_LIST, _pid); lastly = false }; finish(_pid)
	:: else
	fi
}

inline tell_step(n)
{
	step_waits[n] = false;
	step_done[n] = true;
	work[(n) / CLAIMS] = true
}

inline import(s, p, f)
{
	d_step {
		n = CLAIMS * STREAMS;
		if
		:: !ended[s] && p > claimed[s] ->
			n = CLAIM(s, claims[s]);
			step_position[n] = p;
			step_fence[n] = f;
			claimed[s] = p;
			claims[s]++
		:: else /* ECANCELED, ERANGE */
		fi
	};
	if
	:: n == CLAIMS * STREAMS
	:: else ->
		d_step {
			if
			:: signalled[f] -> tell_step(n)
			:: else -> step_waits[n] = true
			fi
		}
	fi;
	n = 0
}

inline tell_export(s)
{
	assert_come(s, exported[s]);
	told[s] = true
}

inline export(s, p)
{
	d_step {
		if
		:: exported[s] || p > claimed[s] /* a stream has one export; EPERM */
		:: else ->
			exported[s] = p;
			if
			:: reached[s] >= p -> tell_export(s)
			:: else
			fi
		fi
	}
}

proctype worker()
{
	byte ops, m, n;
	bool going, lastly;

	do
	:: ops == OPS -> break
	:: ops < OPS && IMPORTS < 2 -> ops++; signal(0, 1)
	:: ops < OPS && IMPORTS < 2 -> ops++; signal(0, 2)
	:: ops < OPS && IMPORTS < 2 && !WAITS -> ops++; signal(1, 1)
	:: ops < OPS && IMPORTS -> ops++; import(0, 1, 0)
	:: ops < OPS && IMPORTS -> ops++; import(0, 2, 1)
	:: ops < OPS && IMPORTS == 1 && !WAITS -> ops++; import(1, 1, 1)
	:: ops < OPS && IMPORTS == 1 && !WAITS -> ops++; export(0, 1)
	od;
	ops = 0;
	m = 0;
	close_stream(0);
	close_stream(1);
	atomic { m = 0; running-- }
}

/* --- the other driver ----------------------------------------------------- */

inline signal_fence(f, e)
{
	signalled[f] = true;
	failed[f] = e;
	i = 0;
	do
	:: i == CLAIMS * STREAMS -> break
	:: else ->
		if
		:: step_waits[i] && step_fence[i] == f -> tell_step(i)
		:: else
		fi;
		i++
	od;
	i = 0;
	do
	:: i == MEMS -> break
	:: else ->
		if
		:: place[i] == IN_FENCE && gate[i] == OF_FENCE(f) ->
			place[i] = DUE
		:: else
		fi;
		i++
	od;
	i = 0
}

proctype fences()
{
	do
	:: signalled[0] && signalled[1] -> break
	:: d_step { !signalled[0] -> signal_fence(0, false) }
	:: d_step { !signalled[1] -> signal_fence(1, false) }
	/* reset */
	:: d_step { !signalled[0] && !signalled[1] ->
		signal_fence(0, true);
		signal_fence(1, true)
	   }
	od;
	running--
}

/* --- work items of the kernel --------------------------------------------- */

/* complete the steps that are done, from the first on */
inline take_done(s)
{
	some = false;
	do
	:: HAS_STEPS(s) && (step_done[CLAIM(s, taken[s])] ||
	   (BUG == 4 && claims[s] == CLAIMS && step_done[CLAIM(s, CLAIMS - 1)])) ->
		reached[s] = step_position[CLAIM(s, taken[s])];
		error[s] = error[s] || failed[step_fence[CLAIM(s, taken[s])]];
		taken[s]++;
		some = true
	:: else -> break
	od;
	if
	:: exported[s] && !told[s] && reached[s] >= exported[s] -> tell_export(s)
	:: else
	fi
}

proctype stream_work(byte s)
{
	bool some;

end:
	do
	:: d_step { work[s] -> work[s] = false; busy++; take_done(s) };
	   d_step {
		if
		:: some -> flush(s, DUE, 0)
		:: else
		fi;
		some = false;
		busy--
	   }
	od
}

/* set m to a due free, under the lock, or to MEMS */
inline pop_due()
{
	if
	:: place[0] == DUE -> m = 0; place[0] = IN_HAND
	:: MEMS > 1 && place[0] != DUE && place[MEMS - 1] == DUE ->
		m = MEMS - 1;
		place[MEMS - 1] = IN_HAND
	:: else -> m = MEMS
	fi;
	due_lock = m < MEMS && BUG != 10
}

proctype due_worker()
{
	byte m;
	bool going;

end:
	do
	:: d_step { !due_lock && (place[0] == DUE || place[MEMS - 1] == DUE) ->
		busy++;
		pop_due()
	   };
	   go_on(m);
	   atomic { due_lock = false; busy--; m = 0 }
	od
}

/* a pending free becomes overdue, at any time */
proctype watch()
{
end:
	do
	:: d_step { MEMS && state[0] == PENDING ->
		state[0] = OVERDUE;
		if
		:: BUG == 5 && place[0] == IN_TREE ->
			place[0] = IN_HAND;
			end_free(0)
		:: else
		fi
	   }
	od
}

/* --- another tenant ------------------------------------------------------- */

inline take_free()
{
	if
	:: place[0] == FREE -> m = 0; place[0] = TAKEN
	:: MEMS > 1 && place[0] != FREE && place[MEMS - 1] == FREE ->
		m = MEMS - 1;
		place[MEMS - 1] = TAKEN
	:: else -> m = MEMS
	fi
}

/* ALLOC of another context, which finishes due frees before it fails */
proctype tenant()
{
	byte m;
	bool going;

	d_step {
		take_free();
		owed[0] = m == MEMS && place[0] == DUE;
		owed[MEMS - 1] = m == MEMS && place[MEMS - 1] == DUE
	};
	do
	:: m < MEMS -> break
	:: else ->
		d_step { !due_lock -> pop_due() };
		if
		:: m == MEMS -> break
		:: else
		fi;
		go_on(m);
		atomic { due_lock = false; m = MEMS }
	od;
	atomic {
		if
		:: m == MEMS -> take_free()
		:: else
		fi;
		/* the frees that were due at the start have ended, or wait again */
		assert(m < MEMS || (!owed[0] && !owed[MEMS - 1]));
		owed[0] = false;
		owed[MEMS - 1] = false
	};
	atomic {
		if
		:: m < MEMS -> place[m] = FREE
		:: else
		fi;
		m = 0;
		running--
	}
}

/* --- waits ---------------------------------------------------------------- */

/* state of position p of stream 0 */
inline check(p)
{
	if
	:: reached[0] >= p -> assert_come(0, p); ret = OK
	:: ended[0] && reached[0] < p &&
	   (BUG == 15 || reached[0] == claimed[0]) ->
		assert(over[0]);
		assert_unclaimed(p);
		ret = ECANCELED
	:: else -> ret = EAGAIN
	fi
}

/* assert that p is not claimed, and that all claimed positions are reached */
inline assert_unclaimed(p)
{
	j = 0;
	do
	:: j == claims[0] -> break
	:: else ->
		assert(step_position[CLAIM(0, j)] < p);
		assert(step_position[CLAIM(0, j)] <= reached[0]);
		j++
	od;
	j = 0
}

/* WAIT: sleeper 0 is in the queue before it checks the position */
proctype waiter()
{
	mtype:result ret;
	bool signals;

	if
	:: wanted = 1
	:: wanted = 2
	fi;
again:
	in_queue[0] = BUG != 11;
	do
	:: asleep[0] = true;
	   d_step { check(wanted) };
	   in_queue[0] = true;
	   if
	   :: ret != EAGAIN -> break
	   :: ret == EAGAIN && !signals -> signals = true; ret = EINTR; break
	   :: ret == EAGAIN -> sleeps[0] = true; !asleep[0]
	   fi;
	   sleeps[0] = false
	od;
	atomic { in_queue[0] = false; asleep[0] = false };
	if
	:: ret == EINTR -> goto again /* SA_RESTART */
	:: ret == EINTR
	:: else
	fi;
	d_step { inside[0]--; running-- }
}

proctype poller()
{
	in_queue[1] = true;
	do
	:: asleep[1] = true;
	   if
	   :: reached[0] >= polled || ended[0] -> break
	   :: else -> sleeps[1] = true; !asleep[1]
	   fi;
	   sleeps[1] = false
	od;
	atomic { in_queue[1] = false; asleep[1] = false; inside[0]--; running-- }
}

/* WAIT with NONBLOCK */
proctype asker()
{
	mtype:result ret;
	byte p, asks;

	do
	:: asks == OPS -> break
	:: asks < OPS ->
		asks++;
		if
		:: p = 1
		:: p = 2
		fi;
		if
		:: BUG == 16 ->
			d_step { check(p) };
			d_step {
				asked_last = p;
				if
				:: ret == EAGAIN -> polled = p
				:: else
				fi
			}
		:: else ->
			d_step { polled = p; asked_last = p };
			d_step { check(p) };
			d_step {
				if
				:: ret == OK -> wake(0)
				:: else
				fi
			}
		fi;
		p = 0
	od;
	running--
}

/* --- the end -------------------------------------------------------------- */

inline assert_all_back()
{
	assert(gone && !refs);
	i = 0;
	do
	:: i == MEMS -> break
	:: else ->
		assert(place[i] == FREE && state[i] == NONE && gate[i] == OPEN);
		i++
	od;
	i = 0;
	do
	:: i == STREAMS -> break
	:: else ->
		assert(!HAS_STEPS(i) && ended[i] && !files[i]);
		assert(told[i] == (exported[i] > 0));
		ok = false;
		j = 0;
		do
		:: j == claims[i] -> break
		:: else -> ok = ok || failed[step_fence[CLAIM(i, j)]]; j++
		od;
		assert(error[i] == ok);
		i++
	od
}

init {
	atomic {
		files[0] = 2;
		files[1] = 2;
		refs = 1 + STREAMS;
		threads = THREADS;
		running = 2 + (IMPORTS > 0) + TENANT + WAITS;
		inside[0] = WAITS > 0;
		run owner();
		run worker();
		if
		:: IMPORTS -> run fences()
		:: else -> signalled[0] = true; signalled[1] = true
		fi;
		run stream_work(0);
		run stream_work(1);
		run due_worker();
		if
		:: WAITS == 1 -> run waiter()
		:: WAITS == 2 -> run poller(); run asker()
		:: else
		fi;
		if
		:: LATE -> run watch()
		:: else
		fi;
		if
		:: TENANT -> run tenant()
		:: else
		fi;
		if
		:: THREADS > 0 -> run thread()
		:: else
		fi;
		if
		:: THREADS > 1 -> run thread()
		:: else
		fi
	}
	if
	:: may_close = true
	:: WAITS ->
		/* only sleepers are left: check that none of them should be awake */
		atomic {
			running == 1 + (sleeps[0] && asleep[0]) +
				(sleeps[1] && asleep[1]) && !work[0] && !busy ->
			assert(!sleeps[0] || reached[0] < wanted);
			assert(!sleeps[1] || reached[0] < asked_last);
			may_close = true
		}
	fi;
	d_step {
		!running && !threads && !work[0] && !work[1] && !busy &&
		place[0] != DUE && place[MEMS - 1] != DUE ->
		assert_all_back()
	}
}
