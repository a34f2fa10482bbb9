/*
 * One slot of sandboxd, step by step (its table is spec/sandbox.fsm), and the kernel under it. The steward asks
 * for two boxes one after the other and kills each whenever it likes; the runner ends, refuses to end, or is dead
 * before it was alive; sandboxd itself may be killed. See README.md for how to read and run it.
 *
 * What holds:
 *   - every spawned box ends destroyed or quarantined: when nothing can happen any more, a box that was to be killed
 *     is gone, and processes exist only in a quarantined slot;
 *   - "gone, clean" is said only when no process and no group of the box is left;
 *   - a slot is used again only when it is empty: no process, no group of the box before;
 *   - each SPAWN is answered once (SPAWNED or REFUSED), each box that was alive has one EXITED, after it nothing but
 *     GONE, and each KILL is followed by a GONE;
 *   - no event comes in a state for which the table calls it a bug;
 *   - no deadlock, and (no cycle) an end.
 */
#include "sandbox_fsm.pml"
#ifndef FAULTS
#define FAULTS 2 /* a process that cannot be killed, sandboxd killed, a step of the build that fails or hangs */
#endif

byte faults = FAULTS;

/* The entry (struct box). */
byte state, whose; /* whose 3: found, of an earlier life */
bit pidfd, alive_once, kill_asked, groups_left, retry;

/* The truth: pid 1 of the box and others in its group, the group itself, and what the kernel does not kill. */
bit pid1, others, group, killed, stuck, said_alive;
bit dead; /* sandboxd is */

/* What was said of run 1 and 2, for the properties. */
byte spawn_answers[4], exits[4];
bit spawned[4], awaited[4];

chan down = [2] of { byte, byte }; /* message, run */
#define SPAWN 1
#define KILL 2
#define KILL_NOW 3

/* --- sandboxd/box.c --------------------------------------------------------------------------------------------- */

inline forget() /* sandboxd/box.c forget() */
{
	whose = 0; pidfd = 0; alive_once = 0; kill_asked = 0; groups_left = 0; retry = 0
}

inline tell_spawn_answer(r)
{
	spawn_answers[r]++;
	assert(spawn_answers[r] == 1)
}

inline tell_exited()
{
	exits[whose]++;
	assert(spawned[whose] && exits[whose] == 1)
}

inline gone(r, clean) /* sandboxd/box.c gone() */
{
	if
	:: clean && whose == r -> assert(!pid1 && !others && !group)
	:: else
	fi;
	awaited[r] = 0
}

inline quarantine(said) /* sandboxd/box.c quarantine() */
{
	if
	:: !alive_once -> tell_spawn_answer(whose)
	:: alive_once && !said -> tell_exited()
	:: else
	fi;
	if
	:: kill_asked -> gone(whose, 0)
	:: else
	fi;
#ifdef BREAK_USED_AGAIN
	forget();
	state = SANDBOX_FREE
#endif
}

/* The only way from one state to another; changed: it is a new one. */
inline go(event) /* sandboxd/box.c go() */
{
	from = state;
	sandbox_step(from, event, state, bug);
	assert(!bug);
	changed = (state != from);
	if
	:: changed ->
		retry = 0;
		if
		:: state == SANDBOX_KILLED -> killed = 1 /* the group first, then pid 1 */
		:: state == SANDBOX_QUARANTINED -> quarantine(from == SANDBOX_EXITED)
		:: else
		fi
	:: else
	fi;
	from = 0
}
byte from;
bit bug, changed;

inline settle() /* sandboxd/box.c settle(): after pid 1 is dead */
{
	if
#ifndef BREAK_GROUP_LEFT
	:: groups_left && (pid1 || others) -> retry = 1 /* the group is busy: again in 4 ms */
#endif
	:: else ->
#ifndef BREAK_GROUP_LEFT
		group = 0;
#endif
		groups_left = 0;
		retry = 0;
		if
		:: !alive_once -> tell_spawn_answer(whose)
		:: else
		fi;
		if
		:: kill_asked -> gone(whose, 1)
		:: else
		fi;
		if
		:: kill_asked || !alive_once -> go(SANDBOX_EV_GONE); forget()
		:: else
		fi
	fi
}

inline is_alive() /* sandboxd/box.c box_is_alive(): the child has said that it is the runner now */
{
	said_alive = 0;
	go(SANDBOX_EV_ALIVE);
	if
	:: changed -> alive_once = 1; spawned[whose] = 1; tell_spawn_answer(whose)
	:: else
	fi
}

inline spawn(r) /* sandboxd/box.c box_spawn(), start() */
{
	if
	:: state != SANDBOX_FREE -> tell_spawn_answer(r) /* no other slot here: REFUSED */
	:: state == SANDBOX_FREE ->
		assert(!pid1 && !others && !group);
		whose = r;
		go(SANDBOX_EV_SPAWN);
		group = 1;
		groups_left = 1;
		killed = 0;
		if
		:: faults > 0 -> faults--; go(SANDBOX_EV_DEAD); settle() /* no child, groups perhaps */
		:: pid1 = 1; pidfd = 1
		fi
	fi
}

inline box_kill(r, event) /* sandboxd/box.c box_kill() */
{
	if
	:: whose != r -> gone(r, 1)
	:: whose == r && state == SANDBOX_QUARANTINED -> gone(r, 0)
	:: whose == r && state == SANDBOX_EXITED -> kill_asked = 1; settle()
	:: whose == r && state != SANDBOX_QUARANTINED && state != SANDBOX_EXITED ->
#ifdef BREAK_KILL_FORGOTTEN
		kill_asked = (kill_asked || state != SANDBOX_KILLED);
#else
		kill_asked = 1;
#endif
		go(event)
	fi
}

inline reap() /* sandboxd/box.c boxes_reap(): pid 1 is dead */
{
	if
	:: said_alive -> is_alive() /* what it said before it died */
	:: else
	fi;
	pidfd = 0;
	go(SANDBOX_EV_DEAD);
	if
	:: changed ->
		if
		:: alive_once -> tell_exited()
		:: else
		fi;
		settle()
	:: else /* too late: quarantined */
	fi
}

/* Its time in this state is running; what ends it now is no fault. */
#define ends_late (state == SANDBOX_BUILDING || state == SANDBOX_KILLED || (state == SANDBOX_EXITED && retry))

active proctype sandboxd()
{
	byte what, r;
end:	do
	:: atomic { !dead && nempty(down) ->
		down?what, r;
		if
		:: what == SPAWN -> spawn(r)
		:: what == KILL -> box_kill(r, SANDBOX_EV_TERM)
		:: what == KILL_NOW -> box_kill(r, SANDBOX_EV_KILL)
		fi;
		what = 0; r = 0 }
	:: atomic { !dead && said_alive && pidfd && pid1 -> is_alive() }
	:: atomic { !dead && pidfd && !pid1 -> reap() }
	/* The clock (sandboxd/box.c boxes_tick(), late()): wall time, grace, the build's time, the next try, giving up. */
	:: atomic { !dead && (state == SANDBOX_ALIVE || state == SANDBOX_STOPPING) -> go(SANDBOX_EV_LATE) }
	:: atomic { !dead && state == SANDBOX_BUILDING && faults > 0 -> faults--; go(SANDBOX_EV_LATE) }
	:: atomic { !dead && state == SANDBOX_EXITED && retry && !others && !pid1 -> settle() }
	:: atomic { timeout && !dead && ends_late -> go(SANDBOX_EV_LATE) }
	/* Started again: everything of an earlier life is killed (sandboxd/cg_open.c sweep()), and what does not go takes its
	 * slot out of use (sandboxd/box.c boxes_sweep()). */
	:: atomic { dead ->
		dead = 0;
		forget();
		state = SANDBOX_FREE; said_alive = 0; killed = 0;
#ifndef BREAK_NO_SWEEP
		if
		:: !stuck -> pid1 = 0; others = 0; group = 0
		:: stuck -> whose = 3; spawn_answers[3] = 0; go(SANDBOX_EV_FOUND); groups_left = 1; settle()
		fi
#endif
	}
	od
}

/* --- the kernel, the runner and the agent --------------------------------------------------------------------------- */

active proctype kernel()
{
end:	do
	:: atomic { pid1 && state == SANDBOX_BUILDING && !said_alive && !killed -> said_alive = 1; others = 1 } /* exec; it forks */
	:: atomic { pid1 && !stuck -> pid1 = 0 }     /* by itself, by TERM, or killed */
	:: atomic { others && !pid1 && !stuck -> others = 0 } /* its namespace goes with pid 1 */
	:: atomic { pid1 && killed && !stuck -> pid1 = 0; others = 0 }
	:: atomic { (pid1 || others) && killed && !stuck && faults > 0 -> faults--; stuck = 1 }
	:: atomic { others && !pid1 && !stuck && faults > 0 -> faults--; stuck = 1 }
	od
}

/* --- the steward, or an attacker in its place --------------------------------------------------------------------- */

active proctype steward()
{
	byte r = 1;
	do
	:: r <= 2 ->
		down!SPAWN, r;
		if
		:: true
		:: atomic { nfull(down) -> awaited[r] = 1; down!KILL, r }
		fi;
		atomic { nfull(down) -> awaited[r] = 1; down!KILL_NOW, r };
		r++
	:: r > 2 -> break
	od
}

active proctype plug()
{
	do
	:: atomic { faults > 0 && !dead ->
		faults--;
		dead = 1;
		awaited[1] = 0; awaited[2] = 0; /* whoever waited is dead as well */
		do
		:: down?_, _
		:: empty(down) -> break
		od }
	:: break
	od
}

active proctype finally()
{
	timeout && !ends_late && !dead;
	assert(!awaited[1] && !awaited[2]);
	assert(state == SANDBOX_FREE || state == SANDBOX_QUARANTINED || (state == SANDBOX_EXITED && !kill_asked));
	assert((!pid1 && !others) || state == SANDBOX_QUARANTINED)
}
