/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The protocol of the Tensor Memory arbiter: three CTAs on one SM, or (PAIRED)
 * a pair on SMs 0 and 1 and a CTA on SM 1; two units of columns an SM.
 *
 * Each CTA makes CALLS calls and exits. A step under the driver's lock is one
 * atomic step here; going to sleep and waking are not. A wait can be given up
 * (a signal, a deadline) or not, as is decided when it begins.
 *
 * What is checked:
 *
 * - no invalid end state: a wait that nobody ends, be it a lost wake-up, a
 *   deadlock that was not found, or a peer that was forgotten, would be one;
 * - the assertions: no unit is granted twice, a pair gets both or neither, the
 *   bypass bound holds, EDEADLK means a deadlock, and does not occur in the
 *   exclusive discipline (EXCLUSIVE).
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
#ifndef BUG
#define BUG 0 /* 1 to 4: a mistake that the model must find */
#endif

#define NOBODY 3
#define SMS (1 + PAIRED)
#define IN_PAIR(c) (PAIRED && (c) < 2)
#define PEER(c) (1 - (c))
#define HOME(c) (PAIRED && (c) > 0 -> 1 : 0)
#define USES(c, s) ((s) == HOME(c) || IN_PAIR(c))
#define UNIT(s, u) (2 * (s) + (u))

mtype:call = { NONE, JOIN_ALLOC, JOIN_DEALLOC, QUEUED, DONE };
mtype:result = { OK, EDEADLK, EPIPE, EPROTO, EBADR, ECANCELED, WAITS };

byte owner[4] = NOBODY; /* of each unit */
byte permit[2] = NOBODY;
byte held[3];
mtype:call call[3] = NONE;
mtype:result result[3] = OK;
byte want[3], bypassed[3];
bool leads[3], relinquished[3], gone[3], took[3];
byte queue[3], queued;

/* the sleeper: is its task running, and has it been told that it is done */
bool asleep[3], told[3];

/* scratch, in atomic steps only */
byte i, j, s, u, w, room, victim;
bool ok, blocked[2], left[3], assumed[4], changed, some;

/* room for the request of c, outside of what assumed says: unit, or NOBODY */
inline find(c)
{
	room = NOBODY;
	u = 2;
	do
	:: u == 0 -> break
	:: else ->
		u--;
		ok = (want[c] == 1 || u == 0);
		s = 0;
		do
		:: s == SMS -> break
		:: else ->
			if
			:: USES(c, s) && (assumed[UNIT(s, u)] ||
			   (want[c] == 2 && assumed[UNIT(s, 1)])) -> ok = false
			:: else
			fi;
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
	:: i == 4 -> break
	:: else -> assumed[i] = (owner[i] != NOBODY); i++
	od
}

inline mark(c, b)
{
	i = 0;
	do
	:: i == 4 -> break
	:: else ->
		if
		:: owner[i] == (c) || (IN_PAIR(c) && owner[i] == PEER(c)) ->
			assumed[i] = b
		:: else
		fi;
		i++
	od
}

inline finish(c, r)
{
	call[c] = DONE;
	result[c] = r;
	told[c] = true;
	if
	:: BUG == 1 && r == OK -> skip /* a grant without a wake-up */
	:: else -> asleep[c] = false
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

inline give(c, at)
{
	u = at;
	do
	:: u == at + want[c] -> break
	:: else ->
		assert(owner[UNIT(HOME(c), u)] == NOBODY);
		owner[UNIT(HOME(c), u)] = c;
		u++
	od;
	held[c] = held[c] + want[c]
}

inline grant(c)
{
	if
	:: !EXCLUSIVE -> pass_by(c)
	:: else
	fi;
	if
	:: leads[c] -> unqueue(c); finish(c, OK)
	:: else
	fi;
	if
	:: IN_PAIR(c) ->
		finish(PEER(c), OK);
		give(PEER(c), room)
	:: else
	fi;
	give(c, room)
}

inline untake(c)
{
	if
	:: took[c] && permit[HOME(c)] == (c) -> permit[HOME(c)] = NOBODY
	:: else
	fi;
	took[c] = false
}

inline fail(c, r)
{
	unqueue(c);
	untake(c);
	finish(c, r);
	if
	:: IN_PAIR(c) -> untake(PEER(c)); finish(PEER(c), r)
	:: else
	fi
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
	blocked[0] = false;
	blocked[1] = false;
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
			blocked[0] = false;
			blocked[1] = false;
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
	:: i == 4 -> break
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
		blocked[0] = false;
		blocked[1] = false;
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
	some = false;
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
			:: some -> find(victim)
			:: else
			fi;
			if
			:: room != NOBODY -> grant(victim); changed = true
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

/* the calls; each leaves its outcome in result[c] */

inline do_alloc(c, n)
{
	want[c] = n;
	took[c] = false;
	if
	:: relinquished[c] || held[c] + n > 2 -> result[c] = ECANCELED
	:: else ->
		result[c] = OK;
		if
		:: !IN_PAIR(c)
		:: IN_PAIR(c) && gone[PEER(c)] -> result[c] = EPIPE
		:: IN_PAIR(c) && !gone[PEER(c)] && relinquished[PEER(c)] &&
		   call[PEER(c)] != JOIN_DEALLOC ->
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
			:: IN_PAIR(c) -> call[PEER(c)] = QUEUED
			:: else
			fi;
			result[c] = WAITS;
			told[c] = false;
			settle();
			if
			:: call[c] == DONE -> call[c] = NONE
			:: else
			fi
		:: else
		fi
	fi
}

inline take_units(c)
{
	i = 0;
	do
	:: i == 4 -> break
	:: else ->
		if
		:: owner[i] == (c) -> owner[i] = NOBODY
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
	:: result[c] == OK -> take_units(c); settle()
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
	if
	:: IN_PAIR(c) && call[PEER(c)] == JOIN_ALLOC -> finish(PEER(c), EPROTO)
	:: else
	fi;
	relinquished[c] = true;
	drop_permit(c);
	settle()
}

inline do_cancel(c)
{
	if
	:: call[c] == QUEUED ->
		if
		:: leads[c] -> unqueue(c)
		:: else -> unqueue(PEER(c))
		fi;
		untake(c);
		if
		:: IN_PAIR(c) ->
			untake(PEER(c));
			call[PEER(c)] = JOIN_ALLOC
		:: else
		fi
	:: else
	fi;
	call[c] = NONE;
	result[c] = ECANCELED;
	settle()
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
	drop_permit(c);
	settle()
}

/* states must not differ by what is scratch */
inline clean()
{
	i = 0;
	j = 0;
	s = 0;
	u = 0;
	w = 0;
	room = 0;
	victim = 0;
	ok = false;
	changed = false;
	some = false;
	blocked[0] = false;
	blocked[1] = false;
	left[0] = false;
	left[1] = false;
	left[2] = false;
	assumed[0] = false;
	assumed[1] = false;
	assumed[2] = false;
	assumed[3] = false
}

proctype cta(byte c)
{
	byte calls = 0;
	bool patient;

	do
	:: calls == CALLS -> break
	:: calls < CALLS ->
		calls++;
		d_step { told[c] = false; result[c] = OK };
		if
		:: d_step { do_alloc(c, 1); clean() }
		:: d_step { do_alloc(c, 2); clean() }
		:: held[c] -> d_step { do_dealloc(c); clean() }
		:: !relinquished[c] -> d_step { do_relinquish(c); clean() }
		:: break
		fi;
		if
		:: result[c] == WAITS || call[c] != NONE ->
			if
			:: patient = true
			:: patient = false
			fi;
			/* as the driver sleeps: first the state, then the test */
			do
			:: true ->
				asleep[c] = true;
				if
				:: told[c] -> break
				:: !patient -> break
				:: !told[c] -> !asleep[c] || !patient
				fi
			od;
			skip;
			d_step {
				asleep[c] = false;
				if
				:: call[c] == DONE -> call[c] = NONE
				:: else -> do_cancel(c)
				fi;
				clean()
			}
		:: else
		fi;
		assert(call[c] == NONE);
		assert(!EXCLUSIVE || result[c] != EDEADLK);
		assert(!IN_PAIR(c) || gone[PEER(c)] || held[c] == held[PEER(c)]);
		d_step {
			result[c] = OK;
			want[c] = 0;
			bypassed[c] = 0;
			took[c] = false;
			told[c] = false;
			patient = false
		}
	od;
	skip;
	d_step { do_exit(c); clean() }
}

init {
	atomic {
		run cta(0);
		run cta(1);
		run cta(2)
	}
	_nr_pr == 1;
	assert(owner[0] == NOBODY && owner[1] == NOBODY &&
	       owner[2] == NOBODY && owner[3] == NOBODY);
	assert(permit[0] == NOBODY && permit[1] == NOBODY && !queued)
}
