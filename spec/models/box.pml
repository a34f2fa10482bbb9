/*
 * One slot of sandboxd, entry by entry (sandboxd/box.h has the picture), and the kernel under it. The steward asks
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
 *   - no deadlock, and (no cycle) an end.
 */
#ifndef FAULTS
#define FAULTS 2 /* a process that cannot be killed, sandboxd killed, a step of the build that fails or hangs */
#endif

#define FREE 0
#define BUILDING 1
#define ALIVE 2
#define STOPPING 3
#define EXITED 4
#define QUARANTINED 5

byte faults = FAULTS;

/* The entry (struct box). */
byte state, whose;
bit pidfd, alive_once, kill_asked, groups_left, grace, retry;

/* The truth: pid 1 of the box and others in its group, the group itself, and what the kernel does not kill. */
bit pid1, others, group, killed, stuck, said_alive;
bit dead; /* sandboxd is */

/* What was said of run 1 and 2, for the properties. */
byte spawn_answers[3], exits[3];
bit spawned[3], awaited[3], gone_clean[3];

chan down = [2] of { byte, byte }; /* message, run */
#define SPAWN 1
#define KILL 2
#define KILL_NOW 3

/* --- sandboxd/box.c --------------------------------------------------------------------------------------------- */

inline forget() /* sandboxd/box.c forget() */
{
	state = FREE; whose = 0; pidfd = 0; alive_once = 0; kill_asked = 0; groups_left = 0; grace = 0; retry = 0
}

inline tell_refused(r)
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

inline destroy() /* sandboxd/box.c box_destroy(): the group first, then pid 1 */
{
	if
	:: pidfd ->
		state = STOPPING;
		grace = 0;
		killed = 1
	:: else
	fi
}

inline settle() /* sandboxd/box.c settle(): after pid 1 is dead */
{
	if
#ifndef BREAK_GROUP_LEFT
	:: groups_left && (pid1 || others) -> retry = 1 /* cg_remove() says busy: again in 4 ms */
#endif
	:: else ->
#ifndef BREAK_GROUP_LEFT
		group = 0;
#endif
		groups_left = 0;
		retry = 0;
		if
		:: !alive_once -> tell_refused(whose)
		:: else
		fi;
		if
		:: kill_asked -> gone(whose, 1)
		:: else
		fi;
		if
		:: kill_asked || !alive_once -> forget()
		:: else
		fi
	fi
}

inline quarantine() /* sandboxd/box.c quarantine() */
{
	retry = 0;
	if
	:: !alive_once -> state = QUARANTINED; tell_refused(whose)
	:: alive_once && state != EXITED -> state = QUARANTINED; tell_exited()
	:: else -> state = QUARANTINED
	fi;
	if
	:: kill_asked -> gone(whose, 0)
	:: else
	fi;
#ifdef BREAK_USED_AGAIN
	forget()
#endif
}

inline is_alive() /* sandboxd/box.c box_is_alive(): the child has said that it is the runner now */
{
	said_alive = 0;
	if
	:: state == BUILDING ->
		state = ALIVE;
		alive_once = 1;
		spawned[whose] = 1;
		spawn_answers[whose]++;
		assert(spawn_answers[whose] == 1)
	:: else
	fi
}

inline spawn(r) /* sandboxd/box.c box_spawn(), start() */
{
	if
	:: state != FREE -> tell_refused(r) /* no other slot here */
	:: state == FREE ->
		assert(!pid1 && !others && !group);
		whose = r;
		state = BUILDING;
		group = 1;
		groups_left = 1;
		killed = 0;
		if
		:: faults > 0 -> faults--; state = EXITED; settle() /* no child, groups perhaps */
		:: pid1 = 1; pidfd = 1
		fi
	fi
}

inline box_kill(r, now) /* sandboxd/box.c box_kill() */
{
	if
	:: whose != r || state == FREE -> gone(r, 1)
	:: whose == r && state == QUARANTINED -> gone(r, 0)
	:: whose == r && state == EXITED -> kill_asked = 1; settle()
	:: whose == r && state == ALIVE && !now -> kill_asked = 1; state = STOPPING; grace = 1
	:: whose == r && state == BUILDING -> kill_asked = 1; destroy()
	:: whose == r && state == ALIVE && now -> kill_asked = 1; destroy()
	:: whose == r && state == STOPPING ->
#ifndef BREAK_KILL_FORGOTTEN
		kill_asked = 1;
#endif
		if
		:: now && grace -> destroy()
		:: else
		fi
	fi
}

inline reap() /* sandboxd/box.c boxes_reap(): pid 1 is dead */
{
	if
	:: said_alive -> is_alive() /* what it said before it died */
	:: else
	fi;
	pidfd = 0;
	if
	:: state == QUARANTINED
	:: else ->
		grace = 0;
		state = EXITED;
		if
		:: alive_once -> tell_exited()
		:: else
		fi;
		settle()
	fi
}

active proctype sandboxd()
{
	byte what, r;
end:	do
	:: atomic { !dead && nempty(down) ->
		down?what, r;
		if
		:: what == SPAWN -> spawn(r)
		:: what == KILL -> box_kill(r, 0)
		:: what == KILL_NOW -> box_kill(r, 1)
		fi;
		what = 0; r = 0 }
	:: atomic { !dead && said_alive && pidfd && pid1 -> is_alive() }
	:: atomic { !dead && pidfd && !pid1 -> reap() }
	/* The clock (sandboxd/box.c boxes_tick()): wall time, grace, the build's time, the next try, and giving up. */
	:: atomic { !dead && state == ALIVE -> destroy() }
	:: atomic { !dead && state == STOPPING && grace -> destroy() }
	:: atomic { !dead && state == BUILDING && faults > 0 -> faults--; destroy() }
	:: atomic { !dead && state == EXITED && retry && !others && !pid1 -> settle() }
	:: atomic { timeout && !dead && state == BUILDING -> destroy() }
	:: atomic { timeout && !dead && ((state == STOPPING && !grace) || (state == EXITED && retry)) -> quarantine() }
	/* Started again (sandboxd/cg_open.c sweep()): first everything of an earlier life is killed. */
	:: atomic { dead && !stuck ->
#ifndef BREAK_NO_SWEEP
		pid1 = 0; others = 0; group = 0;
#endif
		forget();
		said_alive = 0; killed = 0; dead = 0 }
	od
}

/* --- the kernel, the runner and the agent --------------------------------------------------------------------------- */

active proctype kernel()
{
end:	do
	:: atomic { pid1 && state == BUILDING && !said_alive && !killed -> said_alive = 1; others = 1 } /* exec; it forks */
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
	{
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
	} unless { dead && stuck } /* there is no sandboxd to ask any more */
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
	timeout && !(!dead && (state == BUILDING || (state == STOPPING && !grace) || (state == EXITED && retry)));
	if
	:: dead -> assert(stuck) /* it refuses to start: that is said, and nothing is spawned */
	:: else ->
		assert(!awaited[1] && !awaited[2]);
		assert(state == FREE || state == QUARANTINED || (state == EXITED && !kill_asked));
		assert((!pid1 && !others) || state == QUARANTINED);
		assert(spawn_answers[1] <= 1 && spawn_answers[2] <= 1)
	fi
}
