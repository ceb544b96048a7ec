/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The protocol of the Tensor Memory arbiter: three CTAs on one SM, or (PAIRED)
 * a pair on SMs 0 and 1 and a CTA on SM 1; two units of columns an SM.
 *
 * Each CTA makes CALLS calls and exits. A step under the driver's lock is one
 * atomic step here; going to sleep, waking, and storing an address are not. A
 * grant is a reservation that each side confirms once it has stored the address,
 * or refuses. A call that waits is asleep until it is told something, or is not,
 * because a signal or a deadline has ended its sleep: then its request stays where
 * it is with nobody there, until the call is started again, which is to go to
 * sleep, or is given up. With THREADS another thread of CTA 0 relinquishes at any
 * moment.
 *
 * With STARVE the calls are fixed: of four units CTA 0 takes two and wants the
 * others, CTA 1 wants all, and CTAs 2 and 3 take one and give it back for ever.
 *
 * What is checked:
 *
 * - no invalid end state: a wait that nobody ends, be it a lost wake-up, a
 *   deadlock that was not found, a permit that nobody gives back, or a peer that
 *   was forgotten, would be one;
 * - the assertions: no unit is granted twice, a pair gets both or neither, an
 *   address counts only if it is the one that was stored, nothing of a call that
 *   failed is left, peers in different collectives both learn of it, EDEADLK means
 *   a deadlock, and does not occur in the exclusive discipline (EXCLUSIVE);
 * - the bypass bound, counted for a call from its beginning to its end whatever
 *   becomes of its request meanwhile, and the grants against the bound.
 */
#ifndef PAIRED
#define PAIRED 0
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef LOSES
#define LOSES 0 /* an address cannot be stored */
#endif
#ifndef THREADS
#define THREADS 0
#endif
#ifndef STARVE
#define STARVE 0
#endif
#ifndef BUG
#define BUG 0 /* 1 to 8: a mistake that the model must find */
#endif

#define NOBODY 15
#define NR (3 + STARVE)
#define UNITS (2 + 2 * STARVE)
#define SMS (1 + PAIRED)
#define ALL_UNITS (UNITS * SMS)
#define IN_PAIR(c) (PAIRED && (c) < 2)
#define PEER(c) (1 - (c))
#define HOME(c) (PAIRED && (c) > 0 -> 1 : 0)
#define USES(c, s) ((s) == HOME(c) || IN_PAIR(c))
#define UNIT(s, u) (UNITS * (s) + (u))
#define RESERVES(c) (call[c] == RESERVED || call[c] == STORED)
#define HAS_JOINED(c) (call[c] == QUEUED || RESERVES(c))
#define IN_ALLOC(c) (call[c] == JOIN_ALLOC || HAS_JOINED(c))
#define IS_WAITING(c) (call[c] != NONE && call[c] != DONE && call[c] != RESERVED)

/* what a CTA calls; an alloc is the number of its units */
#define DEALLOC 5
#define RELINQUISH 6
#define LEAVE 7

/* who stands for a request where its calls are counted */
#define CALLER(c) (IN_PAIR(c) -> 0 : (c))
#define EARLIER(a, b) earlier[NR * (a) + (b)]

mtype:call = { NONE, JOIN_ALLOC, JOIN_DEALLOC, QUEUED, RESERVED, STORED, DONE };
mtype:result = { OK, EDEADLK, EPIPE, EPROTO, EBADR, ECANCELED, EFAULT, WAITS };

byte owner[ALL_UNITS] = NOBODY;
bool reserved[ALL_UNITS]; /* to its owner, which does not hold it yet */
byte permit[SMS] = NOBODY;
byte held[NR], at[NR]; /* units; the first one reserved */
mtype:call call[NR] = NONE;
mtype:result result[NR] = OK;
byte want[NR], bypassed[NR];
bool leads[NR], relinquished[NR], gone[NR], took[NR];
byte queue[NR], queued;

/* the sleeper: is its task running, and has it been told something */
bool asleep[NR], told[NR];

/*
 * Of a call that waits for columns: how often one that came later was served,
 * and against the bound; whose call came first.
 */
bool counts[NR], earlier[NR * NR];
byte passes[NR], forces[NR];

/* scratch, in atomic steps only */
byte i, j, k, s, u, w, room, victim;
bool ok, blocked[SMS], left[NR], assumed[ALL_UNITS], changed, some, forcing;

/* --- what is counted ------------------------------------------------------ */

inline forget_order(c)
{
	k = 0;
	do
	:: k == NR -> break
	:: else ->
		EARLIER(CALLER(c), k) = false;
		EARLIER(k, CALLER(c)) = false;
		k++
	od;
	passes[CALLER(c)] = 0;
	forces[CALLER(c)] = 0
}

inline count_no_more(c)
{
	counts[CALLER(c)] = false;
	forget_order(c)
}

inline count_from_here(c)
{
	forget_order(c);
	counts[CALLER(c)] = true;
	k = 0;
	do
	:: k == NR -> break
	:: else ->
		EARLIER(k, CALLER(c)) = counts[k] && k != CALLER(c);
		k++
	od
}

/* c is served before calls that came earlier */
inline count_pass(c)
{
	k = 0;
	do
	:: k == NR -> break
	:: else ->
		contends(k);
		if
		:: some && counts[k] && EARLIER(k, CALLER(c)) &&
		   (!PAIRED || USES(k, HOME(c)) || USES(c, HOME(k))) ->
			if
			:: forcing ->
				forces[k]++;
				/* each of the others once, of those that hold */
				assert(forces[k] < NR)
			:: else ->
				passes[k]++;
				assert(passes[k] <= BOUND)
			fi
		:: else
		fi;
		k++
	od
}

/* --- room ----------------------------------------------------------------- */

/* room for the request of c, outside of what assumed says: unit, or NOBODY */
inline find(c)
{
	room = NOBODY;
	u = UNITS;
	do
	:: u == 0 -> break
	:: else ->
		u--;
		ok = (u % want[c] == 0) && (u + want[c] <= UNITS);
		s = 0;
		do
		:: s == SMS -> break
		:: else ->
			k = u;
			do
			:: k >= u + want[c] || k >= UNITS -> break
			:: else ->
				if
				:: USES(c, s) && assumed[UNIT(s, k)] ->
					ok = false
				:: else
				fi;
				k++
			od;
			s++
		od;
		if
		:: ok -> room = u
		:: else
		fi
	od
}

/* what is taken now */
inline look()
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else -> assumed[i] = (owner[i] != NOBODY); i++
	od
}

inline mark(c, b)
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else ->
		if
		:: owner[i] == (c) || (IN_PAIR(c) && owner[i] == PEER(c)) ->
			assumed[i] = b
		:: else
		fi;
		i++
	od
}

/* --- waits ---------------------------------------------------------------- */

inline tell(c)
{
	told[c] = true;
	if
	:: BUG == 1 && call[c] == RESERVED -> skip /* no wake-up */
	:: else -> asleep[c] = false
	fi
}

inline finish(c, r)
{
	call[c] = DONE;
	result[c] = r;
	tell(c)
}

/* who is about to store an address finds out when it confirms that */
inline end(c, r)
{
	if
	:: call[c] == RESERVED -> call[c] = DONE; result[c] = r
	:: else -> finish(c, r)
	fi
}

inline unqueue(c)
{
	i = 0;
	do
	:: queue[i] == (c) -> break
	:: else -> i++
	od;
	do
	:: i + 1 >= queued -> break
	:: else -> queue[i] = queue[i + 1]; i++
	od;
	queued--;
	queue[queued] = 0;
	leads[c] = false
}

inline contends(c)
{
	some = (!EXCLUSIVE || permit[HOME(c)] != (c))
}

inline spent(c)
{
	contends(c);
	some = some && bypassed[c] >= BOUND
}

/* every older request for one of its SMs is passed once more */
inline pass_by(c)
{
	count_pass(c);
	j = 0;
	do
	:: j >= queued -> break
	:: queue[j] == (c) -> break
	:: else ->
		contends(queue[j]);
		if
		:: some && (!PAIRED || USES(queue[j], HOME(c)) ||
			    USES(c, HOME(queue[j]))) && bypassed[queue[j]] < BOUND
			-> bypassed[queue[j]]++
		:: else
		fi;
		j++
	od
}

/* --- grants --------------------------------------------------------------- */

inline reserve(c, start)
{
	assert(!EXCLUSIVE || permit[HOME(c)] == (c));
	u = start;
	do
	:: u == start + want[c] -> break
	:: else ->
		assert(owner[UNIT(HOME(c), u)] == NOBODY);
		owner[UNIT(HOME(c), u)] = c;
		reserved[UNIT(HOME(c), u)] = true;
		u++
	od;
	at[c] = start;
	call[c] = RESERVED;
	tell(c)
}

inline grant(c)
{
	if
	:: !EXCLUSIVE -> pass_by(c)
	:: else
	fi;
	unqueue(c);
	count_no_more(c);
	reserve(c, room);
	if
	:: IN_PAIR(c) -> reserve(PEER(c), room)
	:: else
	fi
}

inline untake(c)
{
	if
	:: took[c] && permit[HOME(c)] == (c) -> permit[HOME(c)] = NOBODY
	:: else
	fi;
	took[c] = false
}

inline unreserve(c)
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else ->
		if
		:: owner[i] == (c) && reserved[i] ->
			owner[i] = NOBODY;
			reserved[i] = false
		:: else
		fi;
		i++
	od;
	untake(c)
}

/* what a call that has been joined, if it is of a pair, has got so far */
inline withdraw(c)
{
	if
	:: call[c] == QUEUED && leads[c] -> unqueue(c)
	:: call[c] == QUEUED && !leads[c] -> unqueue(PEER(c))
	:: else
	fi;
	unreserve(c);
	if
	:: IN_PAIR(c) -> unreserve(PEER(c))
	:: else
	fi
}

inline give(c)
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else ->
		if
		:: owner[i] == (c) -> reserved[i] = false
		:: else
		fi;
		i++
	od;
	held[c] = held[c] + want[c];
	took[c] = false
}

inline fail(c, r)
{
	withdraw(c);
	count_no_more(c);
	finish(c, r);
	if
	:: IN_PAIR(c) -> finish(PEER(c), r)
	:: else
	fi
}

inline unblock()
{
	blocked[0] = false;
	blocked[SMS - 1] = false
}

inline obtain_permit(c)
{
	ok = true;
	if
	:: !EXCLUSIVE || permit[HOME(c)] == (c)
	:: else ->
		ok = permit[HOME(c)] == NOBODY &&
		     (!IN_PAIR(c) || permit[HOME(PEER(c))] == NOBODY);
		if
		:: ok ->
			pass_by(c);
			permit[HOME(c)] = c;
			took[c] = true;
			if
			:: IN_PAIR(c) ->
				permit[HOME(PEER(c))] = PEER(c);
				took[PEER(c)] = true
			:: else
			fi
		:: else
		fi
	fi
}

inline is_blocked(c)
{
	contends(c);
	ok = some && (blocked[HOME(c)] ||
		      (IN_PAIR(c) && blocked[HOME(PEER(c))])) 
}

inline block(c)
{
	blocked[HOME(c)] = true;
	if
	:: IN_PAIR(c) -> blocked[HOME(PEER(c))] = true
	:: else
	fi
}

/* serve what can be served, in order; again when a grant has spent a bound */
inline serve_all()
{
	unblock();
	w = 0;
	do
	:: w >= queued -> break
	:: else ->
		changed = false;
		is_blocked(queue[w]);
		if
		:: ok
		:: else ->
			obtain_permit(queue[w]);
			if
			:: ok ->
				look();
				victim = queue[w];
				find(victim);
				if
				:: room != NOBODY ->
					grant(victim);
					changed = true
				:: else
				fi
			:: else
			fi
		fi;
		if
		:: changed ->
			unblock();
			w = 0
		:: else ->
			spent(queue[w]);
			if
			:: some -> block(queue[w])
			:: else
			fi;
			w++
		fi
	od
}

/* the reduction; what remains is in left */
inline reduce(bounds)
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else -> assumed[i] = false; i++
	od;
	w = 0;
	do
	:: w >= queued -> break
	:: else -> left[queue[w]] = true; mark(queue[w], true); w++
	od;
	changed = true;
	do
	:: !changed -> break
	:: else ->
		changed = false;
		unblock();
		w = 0;
		do
		:: w >= queued -> break
		:: !left[queue[w]] -> w++
		:: else ->
			is_blocked(queue[w]);
			room = NOBODY;
			if
			:: !ok -> victim = queue[w]; find(victim)
			:: else
			fi;
			if
			:: room != NOBODY ->
				left[queue[w]] = false;
				mark(queue[w], false);
				changed = true
			:: else ->
				spent(queue[w]);
				if
				:: bounds && some -> block(queue[w])
				:: else
				fi
			fi;
			w++
		od
	od
}

/* every unit of an SM of c is held, by somebody who waits for columns */
inline assert_deadlock(c)
{
	some = STARVE;
	s = 0;
	do
	:: s == SMS -> break
	:: else ->
		some = some || (USES(c, s) && owner[UNIT(s, 0)] != NOBODY &&
		       call[owner[UNIT(s, 0)]] == QUEUED &&
		       owner[UNIT(s, 1)] != NOBODY &&
		       call[owner[UNIT(s, 1)]] == QUEUED);
		s++
	od;
	assert(some)
}

inline break_deadlock()
{
	reduce(true);
	changed = false;
	w = 0;
	do
	:: w >= queued || changed -> break
	:: else ->
		victim = queue[w];
		if
		:: left[victim] && BUG != 3 ->
			look();
			some = held[victim] ||
			       (IN_PAIR(victim) && held[PEER(victim)]);
			room = NOBODY;
			if
			:: some || BUG == 6 -> find(victim)
			:: else
			fi;
			if
			:: room != NOBODY ->
				forcing = true;
				grant(victim);
				forcing = false;
				changed = true
			:: else
			fi
		:: else
		fi;
		w++
	od;
	if
	:: !changed && BUG != 2 ->
		reduce(false);
		changed = false;
		victim = NOBODY;
		w = 0;
		do
		:: w >= queued -> break
		:: else ->
			if
			:: left[queue[w]] && (held[queue[w]] ||
			   (IN_PAIR(queue[w]) && held[PEER(queue[w])])) ->
				victim = queue[w]
			:: else
			fi;
			w++
		od;
		if
		:: victim != NOBODY ->
			assert_deadlock(victim);
			fail(victim, EDEADLK);
			changed = true
		:: else
		fi
	:: else
	fi
}

inline settle()
{
	changed = true;
	do
	:: !changed -> break
	:: else ->
		serve_all();
		changed = false;
		if
		:: !EXCLUSIVE && queued -> break_deadlock()
		:: else
		fi
	od;
	i = 0;
	do
	:: i >= queued -> break
	:: else -> assert(bypassed[queue[i]] <= BOUND); i++
	od
}

/* --- the calls, before settle(); each leaves its outcome in result[c] ------ */

/* c asks first in this call, or again after a signal */
inline do_alloc(c, n, newly)
{
	want[c] = n;
	if
	:: relinquished[c] || held[c] + n > UNITS -> result[c] = ECANCELED
	:: else ->
		result[c] = OK;
		if
		:: !IN_PAIR(c)
		:: IN_PAIR(c) && gone[PEER(c)] -> result[c] = EPIPE
		:: IN_PAIR(c) && !gone[PEER(c)] && relinquished[PEER(c)] &&
		   (BUG == 8 || call[PEER(c)] != JOIN_DEALLOC) ->
			result[c] = EPROTO
		:: else ->
			if
			:: call[PEER(c)] == JOIN_DEALLOC ->
				finish(PEER(c), EPROTO);
				result[c] = EPROTO
			:: call[PEER(c)] == JOIN_ALLOC &&
			   want[PEER(c)] != n ->
				finish(PEER(c), EBADR);
				result[c] = EBADR
			:: call[PEER(c)] == JOIN_ALLOC &&
			   want[PEER(c)] == n
			:: else -> call[c] = JOIN_ALLOC; result[c] = WAITS
			fi
		fi;
		if
		:: result[c] == OK ->
			call[c] = QUEUED;
			leads[c] = true;
			bypassed[c] = 0;
			queue[queued] = c;
			queued++;
			if
			:: newly || !counts[CALLER(c)] -> count_from_here(c)
			:: else
			fi;
			if
			:: IN_PAIR(c) -> call[PEER(c)] = QUEUED
			:: else
			fi;
			result[c] = WAITS;
			told[c] = false
		:: else
		fi
	fi
}

inline commit(c)
{
	if
	:: !IN_PAIR(c) -> give(c); call[c] = NONE; result[c] = OK
	:: IN_PAIR(c) && call[PEER(c)] == STORED ->
		give(c);
		give(PEER(c));
		call[c] = NONE;
		result[c] = OK;
		finish(PEER(c), OK)
	:: else
	fi
}

/* the address where was stored, or could not be */
inline do_confirm(c, where, good)
{
	told[c] = false;
	if
	:: call[c] == DONE -> call[c] = NONE
	:: call[c] != DONE && !good ->
		if
		:: HAS_JOINED(c) ->
			withdraw(c);
			count_no_more(c);
			if
			:: IN_PAIR(c) -> end(PEER(c), EFAULT)
			:: else
			fi
		:: else
		fi;
		call[c] = NONE;
		result[c] = EFAULT
	:: call[c] == RESERVED && good && at[c] == where ->
		call[c] = STORED;
		if
		:: BUG == 5 -> took[c] = false /* too early */
		:: else
		fi;
		commit(c)
	:: else
	fi
}

inline take_units(c)
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else ->
		if
		:: owner[i] == (c) ->
			owner[i] = NOBODY;
			assert(!reserved[i])
		:: else
		fi;
		i++
	od;
	held[c] = 0
}

/* gives everything back: one dealloc stands for all */
inline do_dealloc(c)
{
	result[c] = OK;
	if
	:: IN_PAIR(c) && gone[PEER(c)] -> result[c] = EPIPE
	:: IN_PAIR(c) && !gone[PEER(c)] && call[PEER(c)] == JOIN_ALLOC ->
		finish(PEER(c), EPROTO);
		result[c] = EPROTO
	:: IN_PAIR(c) && !gone[PEER(c)] && call[PEER(c)] == JOIN_DEALLOC ->
		take_units(PEER(c));
		finish(PEER(c), OK)
	:: IN_PAIR(c) && !gone[PEER(c)] && call[PEER(c)] != JOIN_ALLOC &&
	   call[PEER(c)] != JOIN_DEALLOC ->
		call[c] = JOIN_DEALLOC;
		result[c] = WAITS
	:: !IN_PAIR(c)
	fi;
	if
	:: result[c] == OK -> take_units(c)
	:: else
	fi
}

inline drop_permit(c)
{
	if
	:: permit[HOME(c)] == (c) -> permit[HOME(c)] = NOBODY
	:: else
	fi;
	took[c] = false
}

inline do_relinquish(c)
{
	some = IN_PAIR(c) && !gone[PEER(c)] && IN_ALLOC(PEER(c));
	if
	:: HAS_JOINED(c) ->
		withdraw(c);
		count_no_more(c);
		if
		:: some -> end(PEER(c), EPROTO)
		:: else
		fi;
		end(c, ECANCELED)
	:: call[c] == JOIN_ALLOC -> end(c, ECANCELED)
	:: !IN_ALLOC(c) && some -> finish(PEER(c), EPROTO)
	:: else
	fi;
	relinquished[c] = true;
	drop_permit(c)
}

/* c gives up what it waits for; a peer that had joined waits for it again */
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
		:: IN_PAIR(c) ->
			call[PEER(c)] = JOIN_ALLOC;
			told[PEER(c)] = false
		:: else
		fi
	:: else
	fi;
	call[c] = NONE;
	told[c] = false;
	result[c] = ECANCELED
}

inline do_exit(c)
{
	gone[c] = true;
	if
	:: IN_PAIR(c) && (call[PEER(c)] == JOIN_ALLOC ||
			  call[PEER(c)] == JOIN_DEALLOC) ->
		if
		:: BUG == 4
		:: else -> finish(PEER(c), EPIPE)
		fi
	:: else
	fi;
	take_units(c);
	drop_permit(c)
}

/* states must not differ by what is scratch */
inline clean()
{
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else -> assumed[i] = false; i++
	od;
	i = 0;
	do
	:: i == NR -> break
	:: else ->
		left[i] = false;
		if
		:: RESERVES(i)
		:: else -> at[i] = 0
		fi;
		i++
	od;
	unblock();
	i = 0;
	j = 0;
	k = 0;
	s = 0;
	u = 0;
	w = 0;
	room = 0;
	victim = 0;
	ok = false;
	changed = false;
	some = false
}

/* --- the CTAs ------------------------------------------------------------- */

/* nothing of a call is left when it is over */
inline assert_over(c)
{
	assert(call[c] == NONE && !leads[c] && !told[c]);
	assert(!took[c]);
	assert(!EXCLUSIVE || result[c] != EDEADLK);
	assert(!IN_PAIR(c) || gone[c] || gone[PEER(c)] ||
	       held[c] == held[PEER(c)])
}

/* what c calls next, or LEAVE */
inline choose(c)
{
	if
	:: calls == CALLS && !STARVE -> op = LEAVE
	:: calls < CALLS && !STARVE -> op = LEAVE
	:: calls < CALLS && !STARVE -> op = 1
	:: calls < CALLS && !STARVE -> op = 2
	:: calls < CALLS && !STARVE && held[c] -> op = DEALLOC
	:: calls < CALLS && !STARVE && !relinquished[c] -> op = RELINQUISH
	:: STARVE && c == 0 && held[c] < 4 -> op = 2
	:: STARVE && c == 1 && !held[c] -> op = 4
	:: STARVE && c > 1 && !held[c] -> op = 1
	:: STARVE && (held[c] == 4 || (c > 1 && held[c])) -> op = DEALLOC
	fi;
	if
	:: !STARVE -> calls++
	:: else
	fi
}

inline do_call(c)
{
	told[c] = false;
	result[c] = OK;
	if
	:: op == DEALLOC -> do_dealloc(c)
	:: op == RELINQUISH -> do_relinquish(c)
	:: op == LEAVE -> do_exit(c)
	:: else -> do_alloc(c, op, true)
	fi;
	/* whoever is told that its peer does something else */
	assert(result[c] != EPROTO || !IN_PAIR(c) ||
	       (call[PEER(c)] != JOIN_ALLOC && call[PEER(c)] != JOIN_DEALLOC));
	settle();
	clean()
}

proctype cta(byte c)
{
	byte calls = 0, op = 0, first = 0;

	do
	:: atomic { choose(c); d_step { do_call(c) } };
again:
		if
		:: atomic {
			call[c] == NONE || call[c] == DONE ->
			d_step {
				call[c] = NONE;
				told[c] = false;
				assert_over(c);
				result[c] = OK;
				want[c] = 0;
				bypassed[c] = 0
			}
			if
			:: op == LEAVE -> break
			:: else -> op = 0
			fi
		}
		:: d_step {
			call[c] == RESERVED ->
				told[c] = false;
				first = at[c]
			};
			goto store
		/* as the driver sleeps: first the state, then the test */
		:: d_step { IS_WAITING(c) -> asleep[c] = true };
			if
			:: told[c]
			:: !told[c] -> !asleep[c]
			fi;
			asleep[c] = false;
			goto again
		/* interrupted, and not started again */
		:: d_step {
			IS_WAITING(c) && !STARVE ->
				do_cancel(c, true);
				settle();
				clean()
			};
			goto again
		/* started again, as it must not be: from here on nobody waits */
		:: d_step {
			IS_WAITING(c) && BUG == 7 && IN_ALLOC(c) ->
				do_cancel(c, false);
				settle();
				clean()
			};
			d_step { do_alloc(c, op, false); settle(); clean() };
			goto again
		fi;
		goto next;
store:
		if
		:: d_step { do_confirm(c, first, true); first = 0; settle();
			    clean() }
		:: d_step { LOSES -> do_confirm(c, first, false); first = 0;
			    settle(); clean() }
		fi;
		goto again;
next:
		skip
	od
}

/* another thread of CTA 0 */
proctype thread()
{
	if
	:: d_step { !gone[0] -> do_relinquish(0); settle(); clean() }
	:: gone[0]
	fi
}

init {
	atomic {
		run cta(0);
		run cta(1);
		run cta(2);
		if
		:: STARVE -> run cta(3)
		:: else
		fi;
		if
		:: THREADS -> run thread()
		:: else
		fi
	}
	_nr_pr == 1;
	i = 0;
	do
	:: i == ALL_UNITS -> break
	:: else -> assert(owner[i] == NOBODY); i++
	od;
	assert(permit[0] == NOBODY && permit[SMS - 1] == NOBODY && !queued)
}
