/*
 * One run, from the request to its end: the public side, stored, the steward and sandboxd, any of which may be
 * killed at any step, and the two boxes (work, check) that the run gets. See README.md for how to read and run it.
 *
 * What holds:
 *   - terminal is final: a final state that anybody was told is the state for ever; a run that was accepted exists;
 *   - the terminal state comes last: when it is committed no process of the run lives, or the end says that the
 *     clean-up failed, or the run is cancelled and the seven seconds that it may take for that are over (its box is
 *     then a stray, whose slot is kept until it is gone); a process that outlived sandboxd itself is nobody's any more
 *     and keeps its slot in quarantine;
 *   - a run never executes twice: each of its boxes is started once at most, whatever is killed and asked again;
 *   - once a revocation was told, the capability is never there again;
 *   - when nothing can happen any more (and, as there is no cycle, that point is always reached) an accepted run is
 *     final, a run whose cancel was accepted while it was not final is cancelled or says that the clean-up failed (which
 *     overrules it),
 *     and each box is gone or quarantined;
 *   - no deadlock.
 *
 * Simplified: one run, one check, one operation a flush (budget.pml has batches), time as "may be late at any
 * moment". What goes wrong (a kill, a lost wake-up, a wait that is over, a box that is refused or cannot be killed)
 * goes wrong FAULTS times, of any kind and at any instant. What one process does between two questions is one step:
 * to be killed in the middle of it is, for everybody else, to be killed before or behind it.
 */
#include "run_fsm.pml"

#ifndef FAULTS
#define FAULTS 2
#endif

#define NONE RUN_STATE__COUNT
#define OK 0
#define REFUSED_ERR 1
#define UNAVAILABLE 2

/* who asks */
#define STEWARD 0
#define PUBLIC 1
#define NOBODY 2

/* operations of stored */
#define OP_CREATE 0
#define OP_CANCEL 1
#define OP_START 2
#define OP_REVOKE 3
#define OP_FINISH 4
#define OP_OPEN 5

/* messages of the pipe: steward to sandboxd, sandboxd to steward */
#define SPAWN 0
#define KILL 1
#define LIST 2
#define SPAWNED 3
#define REFUSED 4
#define EXITED 5
#define GONE 6
#define BOX 7
#define LISTED 8

#define WORK 0
#define CHECK 1

/* entries of sandboxd's list; building and alive are one here (box.pml takes them apart) */
#define FREE 0
#define ALIVE 1
#define STOPPING 2
#define EXITED_BOX 3
#define QUARANTINED 4

/* steps of a run in the steward (steward/app.h) */
#define S_NONE 0
#define S_SPAWN_WORK 1
#define S_WORK 2
#define S_WORK_GONE 3
#define S_JUDGE 4
#define S_SPAWN_CHECK 5
#define S_CHECK 6
#define S_CHECK_GONE 7
#define S_ORPHAN 8
#define S_SETTLE 9
/* of a run whose upload is an archive (-DARCHIVE: each one's is), before S_SPAWN_WORK */
#define S_SPAWN_UNPACK 10
#define S_UNPACK 11
#define S_UNPACK_GONE 12
#define S_TREE 13

/* --- faults ----------------------------------------------------------------------------------- */
byte faults = FAULTS; /* left */
bit kill_stored, kill_sandboxd; /* killed, and not started again yet */
byte kill_steward;              /* 1: killed; 2: its memory is gone as well */

/* --- the store: in memory (committed), and on the disk ------------------------------------------ */
byte m_state = NONE, d_state = NONE;
byte m_cap, d_cap;     /* 0 none, else the RUN_START that made it */
bit m_unclean, d_unclean; /* the recorded end says that a box may be left */
bit changed;           /* the operation at hand: somebody is to be woken */
byte cur_who = NOBODY, cur_err, cur_state;
bit cur, cur_revoked, subscribed;

chan ask[2] = [1] of { byte, byte, bit, byte }; /* op, event, unclean, expires */
chan answer[2] = [1] of { byte, byte };         /* error, state */
chan stale = [1] of { byte, byte, bit, byte };  /* a question that its asker gave up lies here, and is still read */
bit asked[2], broken[2], over[2];               /* a question is out; its connection broke; patience is over */
chan woken = [4] of { byte };

/* --- what was told, and what happened (for the properties only) ----------------------------------- */
bit told_created, told_cancel, told_revoked;
byte told_final = NONE;
byte ran[2];

/* --- sandboxd --------------------------------------------------------------------------------------- */
byte entry[2];
bit alive[2];      /* processes of the box, in truth */
bit kill_asked[2]; /* the steward wants the box gone */
bit old[2];        /* the slot holds what was found of an earlier life */
#define lives(kind) (alive[kind] && !old[kind])
chan down = [8] of { byte, byte };
chan up = [12] of { byte, byte, bit }; /* message, kind, clean */

/* --- the steward's memory --------------------------------------------------------------------------- */
byte step;
bit in_queue, resync, listed, boxes[2], strays[2];
bit revoked, cancelled, unclean, failed, restart, again, gave_up;
bit asking; /* a RUN_START was given up and may have been done */
byte starts; /* the last RUN_START's expires_at, as a number */
byte s_err, s_state;

#define have_run (step != S_NONE)
#define waiting (have_run && step != S_SETTLE && !again) /* for something, and not longer than a deadline */

/* What the periodic reading of the open runs (RESYNC in steward/sweep.c) would find. The clock comes only when
 * nothing else can happen, and only when it changes something: every other reading is a step that does nothing. */
#define unknown_to_steward                                                                                    \
	((m_state == RUN_QUEUED && !in_queue && !have_run) ||                                                   \
	 ((m_state == RUN_RUNNING || m_state == RUN_CANCELLING) && !have_run) ||                                \
	 (m_state == RUN_CANCELLING && have_run && !cancelled))

/* --- a question (lib/ask.c ask_call) ------------------------------------------------------------------ */

/* Gives up: the connection is closed. What stored has not read yet it may still read; its answer goes nowhere. */
inline give_up(me)
{
	if
	:: cur && cur_who == me -> cur_who = NOBODY
	:: nempty(ask[me]) ->
		if
		:: nfull(stale) -> ask[me]?g_op, g_ev, g_unclean, g_expires; stale!g_op, g_ev, g_unclean, g_expires
		:: ask[me]?g_op, g_ev, g_unclean, g_expires
		fi
	:: nempty(answer[me]) -> answer[me]?_, _
	:: empty(ask[me]) && empty(answer[me]) && cur_who != me
	fi;
	broken[me] = 0
}

/* Asks until there is an answer or patience is over; a broken connection is opened again, and the same asked. */
inline call(me, op, ev, dirty, expires, err, state)
{
	asked[me] = 1;
	ask[me]!op, ev, dirty, expires;
	do
	:: answer[me]?err, state -> break
	:: broken[me] -> broken[me] = 0; ask[me]!op, ev, dirty, expires
	:: over[me] -> err = UNAVAILABLE; break
	od;
	asked[me] = 0;
	over[me] = 0
}
byte g_op, g_ev, g_expires;
bit g_unclean;

/* --- stored ------------------------------------------------------------------------------------------------ */

inline move(ev) /* store/t_run.c run_move() */
{
	run_step(m_state, ev, t_state, t_refused);
	if
	:: !t_refused && t_state != m_state ->
		assert(!run_final(m_state));
		m_state = t_state;
		changed = 1
	:: else
	fi
}
byte t_state;
bit t_refused;

/* One transaction. */
inline execute(op, ev, dirty, expires)
{
	changed = 0;
	t_refused = 0;
	cur_err = OK;
	cur_revoked = 0;
	if
	:: op == OP_CREATE -> /* store/op_runs.c op_run_create(): asked again by content */
		if
		:: m_state == NONE -> m_state = RUN_QUEUED; changed = 1
		:: else
		fi
	:: op != OP_CREATE && m_state == NONE -> cur_err = REFUSED_ERR
	:: op == OP_CANCEL && m_state != NONE -> /* store/op_runs.c op_run_cancel() */
		move(RUN_EV_CANCEL);
		if
		:: changed -> m_cap = 0
		:: else
		fi;
		cur_revoked = (m_state != RUN_QUEUED);
	:: op == OP_START && m_state != NONE -> /* store/op_steward.c op_run_start() */
		if
		:: m_cap != 0 && m_cap != expires -> cur_err = REFUSED_ERR
		:: m_cap != 0 && m_cap == expires /* the same answer again */
		:: else ->
			move(RUN_EV_START);
			if
			:: t_refused -> cur_err = REFUSED_ERR
			:: else ->
				assert(!told_revoked);
				m_cap = expires
			fi
		fi
	:: op == OP_REVOKE && m_state != NONE -> /* store/op_steward.c op_cap_revoke() */
		m_cap = 0;
		cur_revoked = 1
	:: op == OP_FINISH && m_state != NONE -> /* store/op_steward.c op_run_finish(), store/run_end.c run_end() */
		move(ev);
		if
		:: t_refused -> cur_err = REFUSED_ERR /* or the same end again, which is OK: the steward does not care */
		:: changed ->
			assert(dirty || (!lives(WORK) && !lives(CHECK)));
			assert(ev != RUN_EV_UNCLEAN || m_state == RUN_FAILED);
			m_cap = 0;
			m_unclean = dirty;
			cur_revoked = 1
		:: else
		fi
	:: op == OP_OPEN && m_state != NONE
	fi;
	cur_state = m_state;
	t_state = 0
}

inline flush() /* store/env.c store_flush() */
{
	d_step { d_state = m_state; d_cap = m_cap; d_unclean = m_unclean }
}

/* What a caller or a subscriber is told. */
inline tell_state(s)
{
	if
	:: run_final(s) ->
		assert(told_final == NONE || told_final == s);
		told_final = s
	:: else
	fi
}

inline send_answer() /* store/batch.c send_answer() */
{
	tell_state(cur_state);
	if
	:: cur_who != NOBODY -> answer[cur_who]!cur_err, cur_state
	:: else
	fi;
	told_revoked = told_revoked || (cur_revoked && cur_who != NOBODY && cur_err == OK)
}

inline notify() /* store/notify.c notify_all() */
{
	if
	:: changed && subscribed && faults > 0 -> faults-- /* lost */
	:: changed && subscribed -> tell_state(m_state); woken!m_state
	:: !changed || !subscribed
	fi
}

inline forget_batch()
{
	op = 0; ev = 0; dirty = 0; expires = 0; cur_err = 0; cur_state = 0; cur_revoked = 0; changed = 0;
	cur_who = NOBODY; cur = 0
}

/* A kill between flush and answer is, to everybody else, one before the flush that loses nothing. */
active proctype stored()
{
	byte op, ev, expires;
	bit dirty;
end_serve:
	{
		do
		:: atomic { ask[STEWARD]?op, ev, dirty, expires -> cur = 1; cur_who = STEWARD; execute(op, ev, dirty, expires) };
			break
		:: atomic { ask[PUBLIC]?op, ev, dirty, expires -> cur = 1; cur_who = PUBLIC; execute(op, ev, dirty, expires) };
			break
		:: atomic { stale?op, ev, dirty, expires -> cur = 1; cur_who = NOBODY; execute(op, ev, dirty, expires) };
			break
		od;
		/* store/batch.c finish_batch() */
#ifdef BREAK_ANSWER_FIRST
		atomic { send_answer(); notify(); forget_batch() };
		atomic { flush(); goto end_serve }
#else
		atomic { flush(); send_answer(); notify(); forget_batch(); goto end_serve }
#endif
	} unless { kill_stored };
	/* Recovery (store/env.c open_env()): what was flushed is there; what was committed and not, may be. */
	atomic {
		if
		:: m_state = d_state; m_cap = d_cap; m_unclean = d_unclean
		:: d_state = m_state; d_cap = m_cap; d_unclean = m_unclean
		fi;
		assert(told_final == NONE || m_state == told_final);
		assert(!told_created || m_state != NONE);
		assert(!told_revoked || m_cap == 0);
		forget_batch();
		kill_stored = 0;
		goto end_serve
	}
}

/* --- the public side: handlers/ through fcgi, which asks again and then answers 503 ----------------------------- */

active proctype client()
{
	byte err, state;
	atomic {
		call(PUBLIC, OP_CREATE, 0, 0, 0, err, state);
		told_created = (err == OK);
		err = 0; state = 0
	};
	if
	:: atomic { told_created ->
		call(PUBLIC, OP_CANCEL, 0, 0, 0, err, state);
		told_cancel = (err == OK && state != RUN_COMPLETED && state != RUN_FAILED);
		err = 0; state = 0 }
	:: true
	fi
}

/* --- sandboxd ------------------------------------------------------------------------------------------------- */

inline tell(what, kind, clean) /* sandboxd/answer.c answer_tell() */
{
	assert(nfull(up));
	up!what, kind, clean
}

inline settle_box(kind) /* sandboxd/box.c settle() */
{
	if
	:: kill_asked[kind] -> tell(GONE, kind, 1); entry[kind] = FREE; kill_asked[kind] = 0
	:: else
	fi
}

inline obey(what, kind)
{
	if
	:: what == SPAWN -> /* sandboxd/box.c box_spawn() */
		if
		:: entry[kind] != FREE -> tell(REFUSED, kind, 0)
		:: entry[kind] == FREE && faults > 0 -> faults--; tell(REFUSED, kind, 1) /* no slot */
		:: entry[kind] == FREE && faults > 0 -> faults--; tell(REFUSED, kind, 0) /* it could not be built */
		:: entry[kind] == FREE ->
			entry[kind] = ALIVE;
			alive[kind] = 1;
			ran[kind]++;
#ifdef ARCHIVE
			/* The box that unpacks is a check box, and gone before the run's own is made. */
			assert(kind == CHECK || entry[CHECK] == FREE);
			assert(ran[kind] <= 1 + kind);
#else
			assert(ran[kind] <= 1);
#endif
			tell(SPAWNED, kind, 0)
		fi
	:: what == KILL -> /* sandboxd/box.c box_kill() */
		if
		:: entry[kind] == FREE || old[kind] -> tell(GONE, kind, 1)
		:: entry[kind] == QUARANTINED && !old[kind] -> tell(GONE, kind, 0)
		:: entry[kind] == EXITED_BOX -> kill_asked[kind] = 1; settle_box(kind)
		:: entry[kind] == ALIVE || entry[kind] == STOPPING -> kill_asked[kind] = 1; entry[kind] = STOPPING
		fi
	:: what == LIST -> /* sandboxd/answer.c sbx_on_list() */
		if
		:: entry[WORK] != FREE && !old[WORK] -> tell(BOX, WORK, 0)
		:: else
		fi;
		if
		:: entry[CHECK] != FREE && !old[CHECK] -> tell(BOX, CHECK, 0)
		:: else
		fi;
		tell(LISTED, 0, 0)
	fi
}

active proctype sandboxd()
{
	byte what, kind;
	bit clean;
serve:
	{
end:		do
		:: atomic { down?what, kind -> obey(what, kind); what = 0; kind = 0 }
		:: atomic { entry[WORK] == ALIVE -> alive[WORK] = 0; entry[WORK] = EXITED_BOX; tell(EXITED, WORK, 0) }
		:: atomic { entry[CHECK] == ALIVE -> alive[CHECK] = 0; entry[CHECK] = EXITED_BOX; tell(EXITED, CHECK, 0) }
		:: atomic { entry[WORK] == STOPPING -> alive[WORK] = 0; entry[WORK] = EXITED_BOX; tell(EXITED, WORK, 0);
			settle_box(WORK) }
		:: atomic { entry[CHECK] == STOPPING -> alive[CHECK] = 0; entry[CHECK] = EXITED_BOX; tell(EXITED, CHECK, 0);
			settle_box(CHECK) }
		/* One that cannot be killed in time (sandboxd/box.c quarantine()). */
		:: atomic { entry[WORK] == STOPPING && faults > 0 -> faults--; entry[WORK] = QUARANTINED;
			tell(EXITED, WORK, 0); tell(GONE, WORK, 0); kill_asked[WORK] = 0 }
		/* The steward is dead: its pipe is closed, and it is started again (sandboxd/children.c children_reap()). */
		:: atomic { kill_steward == 2 ->
			do
			:: down?_, _
			:: up?_, _, _
			:: empty(down) && empty(up) -> break
			od;
			kill_steward = 0 }
		od
	} unless { kill_sandboxd };
	/* Started again: whatever an earlier life left is killed first (sandboxd/cg_open.c sweep()), then the children
	 * are started. What does not go away takes its slot out of use (sandboxd/box.c boxes_sweep()). */
	atomic {
		kill_steward == 2;
		entry[WORK] = FREE; entry[CHECK] = FREE; old[WORK] = 0; old[CHECK] = 0;
#ifndef BREAK_NO_SWEEP
		if
		:: alive[WORK] && faults > 0 -> faults--; entry[WORK] = QUARANTINED; old[WORK] = 1
		:: alive[WORK] = 0
		fi;
		if
		:: alive[CHECK] && faults > 0 -> faults--; entry[CHECK] = QUARANTINED; old[CHECK] = 1
		:: alive[CHECK] = 0
		fi;
#endif
		kill_asked[WORK] = 0; kill_asked[CHECK] = 0;
		what = 0; kind = 0;
		kill_sandboxd = 0;
		kill_steward = 0
	};
	goto serve
}

#include "run_steward.pml"

/* --- who pulls the plugs --------------------------------------------------------------------------------------- */

inline cut(me) /* a connection whose stored end died */
{
	if
	:: asked[me] && !over[me] && empty(answer[me]) -> /* what was sent is there to be read */
		do
		:: ask[me]?_, _, _, _
		:: empty(ask[me]) -> break
		od;
		broken[me] = 1
	:: !asked[me] || over[me] || nempty(answer[me])
	fi
}

inline stored_dies() /* nothing of it outlives it but the disk */
{
	kill_stored = 1;
	cut(STEWARD);
	cut(PUBLIC);
	do
	:: stale?_, _, _, _
	:: woken?_
	:: empty(stale) && empty(woken) -> break
	od;
	cur = 0; cur_who = NOBODY; subscribed = 0
}

inline steward_dies()
{
	kill_steward = (kill_steward == 0 -> 1 : kill_steward);
	if
	:: asked[STEWARD] -> give_up(STEWARD)
	:: else
	fi;
	asked[STEWARD] = 0; over[STEWARD] = 0;
	do
	:: woken?_
	:: empty(woken) -> break
	od;
	subscribed = 0
}

inline sandboxd_dies() /* and with it its children; a box may live on for a moment */
{
	kill_sandboxd = 1;
	stored_dies();
	steward_dies();
	do
	:: down?_, _
	:: up?_, _, _
	:: empty(down) && empty(up) -> break
	od;
	if
	:: alive[WORK] = 0; alive[CHECK] = 0
	:: true
	fi
}

inline patience_is_over(me)
{
	faults--;
	give_up(me);
	over[me] = 1
}

active proctype plug()
{
	do
	:: atomic { faults > 0 && !kill_steward && !kill_sandboxd -> faults--; steward_dies() }
	:: atomic { faults > 0 && !kill_stored && !kill_sandboxd -> faults--; stored_dies() }
	:: atomic { faults > 0 && !kill_sandboxd -> faults--; sandboxd_dies() }
	:: atomic { faults > 0 && asked[STEWARD] && !over[STEWARD] -> patience_is_over(STEWARD) }
	:: atomic { faults > 0 && asked[PUBLIC] && !over[PUBLIC] -> patience_is_over(PUBLIC) }
	:: break
	od
}

/* --- the end: nothing can happen any more ------------------------------------------------------------------------ */

active proctype finally()
{
#ifdef BREAK_DROP_WAKE
	timeout && !waiting;
#else
	timeout && !waiting && !unknown_to_steward;
#endif
	assert(!told_created || run_final(d_state));
	assert(!told_cancel || d_state == RUN_CANCELLED || d_unclean);
	assert(d_state == NONE || !run_final(d_state) || d_cap == 0);
	assert(!alive[WORK] || entry[WORK] == QUARANTINED);
	assert(!alive[CHECK] || entry[CHECK] == QUARANTINED);
	assert(entry[WORK] == FREE || entry[WORK] == QUARANTINED);
	assert(entry[CHECK] == FREE || entry[CHECK] == QUARANTINED)
}
