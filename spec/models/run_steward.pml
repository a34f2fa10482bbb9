/*
 * The steward in run.pml: what it does with what it hears, step by step as in steward/run.c, sweep.c, launch.c,
 * settle.c and control.c. Its memory is declared in run.pml.
 */
inline steward_asks(op, ev, dirty, expires)
{
	call(STEWARD, op, ev, dirty, expires, s_err, s_state)
}

inline tell_revoke() /* steward/tell.c tell_revoke() */
{
	if
	:: !revoked -> steward_asks(OP_REVOKE, 0, 0, 0); revoked = (s_err != UNAVAILABLE)
	:: else
	fi
}

inline forget_run() /* steward/run.c run_free() */
{
	d_step {
		step = S_NONE; boxes[WORK] = 0; boxes[CHECK] = 0; revoked = 0; cancelled = 0; unclean = 0; failed = 0;
		restart = 0; again = 0; gave_up = 0
	}
}

inline run_settle() /* steward/run.c run_settle() */
{
	d_step { boxes[WORK] = 0; boxes[CHECK] = 0; again = 0; step = S_SETTLE }
}

inline spawn(kind) /* steward/run.c spawn() */
{
	down!SPAWN, kind;
	boxes[kind] = 1;
	again = 0
}

inline end_box(kind, next) /* steward/run.c end_box(): revoked, killed, awaited */
{
	if
	:: kind == WORK -> tell_revoke()
	:: else
	fi;
	down!KILL, kind;
#ifdef BREAK_TERMINAL_FIRST
	run_settle();
#else
	step = next;
#endif
	again = 0
}

inline run_cancel() /* steward/run.c run_cancel() */
{
	if
	:: !cancelled ->
		cancelled = 1;
		revoked = 1; /* by the operation that recorded the request */
		if
		:: step == S_SPAWN_WORK || step == S_WORK ->
			if
			:: boxes[WORK] -> down!KILL, WORK
			:: else -> run_settle()
			fi
		:: step == S_TREE -> run_settle()
		:: step == S_SPAWN_CHECK || step == S_CHECK || step == S_SPAWN_UNPACK || step == S_UNPACK ->
			if
			:: boxes[CHECK] -> down!KILL, CHECK
			:: else -> run_settle()
			fi
		:: else
		fi
	:: else
	fi
}

inline seen(state, woke) /* steward/sweep.c seen() */
{
	if
	:: state == RUN_QUEUED -> in_queue = (in_queue || !have_run)
	:: state == RUN_CANCELLING ->
		in_queue = 0;
		if
		:: have_run -> run_cancel()
		:: else -> resync = (resync || woke)
		fi
	:: state == RUN_RUNNING
	:: else -> in_queue = 0
	fi
}

inline orphan() /* steward/sweep.c orphan(), steward/run.c run_adopt() */
{
	in_queue = 0;
	asking = 0;
	restart = 1;
	failed = 1;
	cancelled = (s_state == RUN_CANCELLING);
	step = S_ORPHAN;
	tell_revoke();
	if
	:: !strays[WORK] && !strays[CHECK] -> run_settle()
	:: else
	fi
}

inline read_open() /* steward/sweep.c read_open() */
{
	resync = 0;
	steward_asks(OP_OPEN, 0, 0, 0);
	if
	:: s_err == UNAVAILABLE -> resync = 1
	:: s_err == OK ->
		if
		:: !have_run && s_state == RUN_RUNNING && in_queue && asking /* it is still to hear its own answer */
		:: !have_run && s_state == RUN_RUNNING && !(in_queue && asking) -> orphan()
		:: !have_run && s_state == RUN_CANCELLING -> orphan()
		:: have_run || !(s_state == RUN_RUNNING || s_state == RUN_CANCELLING) -> seen(s_state, 0)
		fi
	:: else
	fi
}

inline start() /* steward/launch.c start(): durable first, box second */
{
	in_queue = 0;
	/* A start whose answer was lost is asked for as it was, unless that is too long ago. */
	if
	:: !asking -> starts++
	:: asking
	:: asking && faults > 0 -> faults--; starts++
	fi;
	asking = 0;
#ifdef BREAK_SPAWN_FIRST
	spawn(WORK);
#endif
	steward_asks(OP_START, 0, 0, starts);
#ifdef BREAK_SPAWN_FIRST
	if
	:: s_err != OK -> down!KILL, WORK; boxes[WORK] = 0
	:: else
	fi;
#endif
	if
	:: s_err == REFUSED_ERR -> resync = 1
	:: s_err == UNAVAILABLE -> in_queue = 1; asking = 1; resync = 1
	:: s_err == OK ->
#ifdef BREAK_SPAWN_FIRST
		step = S_SPAWN_WORK
#else
#ifdef ARCHIVE
		step = S_SPAWN_UNPACK;
		spawn(CHECK)
#else
		step = S_SPAWN_WORK;
		spawn(WORK)
#endif
#endif
	/* Its agent profile is gone, or the bundle cannot be made (steward/launch.c prepare()). */
	:: s_err == OK && faults > 0 -> faults--; failed = 1; run_settle()
	fi
}

inline begin_check() /* steward/run.c begin_check() */
{
	step = S_SPAWN_CHECK;
	spawn(CHECK)
}

inline after_gone() /* steward/run.c after_gone() */
{
	if
	:: step == S_WORK_GONE -> step = S_JUDGE
	:: step == S_UNPACK_GONE && !failed && !cancelled && !unclean -> step = S_TREE
	:: else -> run_settle()
	fi
}

inline tree_ended() /* steward/run.c run_judge_ended(), begin_work() */
{
	if
	:: failed = 1
	:: true
	fi;
	if
	:: !failed && !cancelled && !unclean -> step = S_SPAWN_WORK; spawn(WORK)
	:: else -> run_settle()
	fi
}

inline judge_ended() /* steward/run.c run_judge_ended() */
{
	if
	:: failed = 1
	:: true
	fi;
	if
	:: !failed && !cancelled && !unclean -> begin_check()
	:: else -> run_settle()
	fi
}

inline on_exited(kind) /* steward/run.c run_exited() */
{
	if
	:: kind == WORK && (step == S_SPAWN_WORK || step == S_WORK) -> end_box(WORK, S_WORK_GONE)
	:: kind == CHECK && (step == S_SPAWN_CHECK || step == S_CHECK) -> end_box(CHECK, S_CHECK_GONE)
#ifdef BREAK_UNPACK_STAYS
	:: kind == CHECK && (step == S_SPAWN_UNPACK || step == S_UNPACK) -> boxes[CHECK] = 0; step = S_TREE
#else
	:: kind == CHECK && (step == S_SPAWN_UNPACK || step == S_UNPACK) -> end_box(CHECK, S_UNPACK_GONE)
#endif
	:: else
	fi
}

inline on_gone(kind, clean) /* steward/control.c gone(), steward/run.c run_gone() */
{
	if
	:: clean -> strays[kind] = 0
	:: else
	fi;
	if
	:: step == S_ORPHAN ->
		unclean = (unclean || !clean);
		if
		:: !clean || (!strays[WORK] && !strays[CHECK]) -> run_settle()
		:: else
		fi
	:: have_run && boxes[kind] && kind == WORK && (step == S_SPAWN_WORK || step == S_WORK || step == S_WORK_GONE) ->
		tell_revoke();
		step = S_WORK_GONE;
		boxes[kind] = 0;
		if
		:: !clean -> unclean = 1; strays[kind] = 1
		:: else
		fi;
		after_gone()
	:: have_run && boxes[kind] && kind == CHECK && (step == S_SPAWN_CHECK || step == S_CHECK || step == S_CHECK_GONE ||
	   step == S_SPAWN_UNPACK || step == S_UNPACK || step == S_UNPACK_GONE) ->
		step = (step < S_SPAWN_UNPACK -> S_CHECK_GONE : S_UNPACK_GONE);
		boxes[kind] = 0;
		if
		:: !clean -> unclean = 1; strays[kind] = 1
		:: else
		fi;
		after_gone()
	:: else
	fi
}

inline on_refused(kind, no_slot) /* steward/run.c run_refused(): asked again when there was no slot */
{
	if
	:: (kind == WORK && step == S_SPAWN_WORK) || (kind == CHECK && (step == S_SPAWN_CHECK || step == S_SPAWN_UNPACK)) ->
		boxes[kind] = 0;
		if
		:: no_slot && !cancelled -> again = 1
		:: failed = 1; run_settle()
		fi
	:: else
	fi
}

inline control_read(what, kind, clean) /* steward/control.c take() */
{
	if
	:: what == SPAWNED -> /* steward/run.c run_spawned() */
		if
		:: kind == WORK && step == S_SPAWN_WORK -> step = S_WORK
		:: kind == CHECK && step == S_SPAWN_CHECK -> step = S_CHECK
		:: kind == CHECK && step == S_SPAWN_UNPACK -> step = S_UNPACK
		:: else
		fi
	:: what == REFUSED -> on_refused(kind, clean)
	:: what == EXITED -> on_exited(kind)
	:: what == GONE -> on_gone(kind, clean)
	:: what == BOX -> /* steward/control.c found() */
		if
		:: !listed -> strays[kind] = 1; down!KILL, kind
		:: else
		fi
	:: what == LISTED -> listed = 1
	fi
}

inline late() /* steward/run.c late() */
{
	if
	:: step == S_SPAWN_WORK || step == S_WORK -> failed = 1; end_box(WORK, S_WORK_GONE)
	:: step == S_SPAWN_CHECK || step == S_CHECK -> failed = 1; end_box(CHECK, S_CHECK_GONE)
	:: step == S_SPAWN_UNPACK || step == S_UNPACK -> failed = 1; end_box(CHECK, S_UNPACK_GONE)
	:: step == S_WORK_GONE || step == S_CHECK_GONE || step == S_UNPACK_GONE ->
		if
		:: unclean = 1
		:: cancelled -> gave_up = 1 /* its own bound is over, not the box's: a stray, and nothing said against it */
		fi;
		if
		:: step == S_WORK_GONE -> boxes[WORK] = 0; strays[WORK] = 1
		:: else -> boxes[CHECK] = 0; strays[CHECK] = 1
		fi;
		after_gone()
	:: step == S_JUDGE -> failed = 1; judge_ended()
	:: step == S_TREE -> failed = 1; tree_ended()
	:: step == S_ORPHAN ->
		if
		:: unclean = 1
		:: cancelled -> gave_up = 1
		fi;
		run_settle()
	fi
}

inline settle_try() /* steward/settle.c settle_try(), look(), decide(), finish() */
{
	tell_revoke();
	steward_asks(OP_OPEN, 0, 0, 0); /* a cancel whose wake-up is still on its way */
	if
	:: s_err == OK && s_state == RUN_CANCELLING -> cancelled = 1
	:: s_err != OK || s_state != RUN_CANCELLING
	fi;
	if
	:: s_err == UNAVAILABLE
	:: s_err != UNAVAILABLE && revoked && unclean -> steward_asks(OP_FINISH, RUN_EV_UNCLEAN, 1, 0)
	:: s_err != UNAVAILABLE && revoked && !unclean && restart -> steward_asks(OP_FINISH, RUN_EV_RESTART, gave_up, 0)
	:: s_err != UNAVAILABLE && revoked && !unclean && !restart && (failed || cancelled) -> steward_asks(OP_FINISH, RUN_EV_FAIL, gave_up, 0)
	:: s_err != UNAVAILABLE && revoked && !unclean && !restart && !failed && !cancelled -> steward_asks(OP_FINISH, RUN_EV_COMPLETE, 0, 0)
	:: s_err != UNAVAILABLE && !revoked -> s_err = UNAVAILABLE
	fi;
	if
	:: s_err != UNAVAILABLE -> forget_run()
	:: else
	fi
}

inline run_tick() /* steward/run.c run_tick(): a refused box is asked for again */
{
	if
	:: step == S_SPAWN_WORK -> spawn(WORK)
	:: else -> spawn(CHECK)
	fi
}

/* Something happens, it is dealt with, and what was heard on the way is forgotten. */
#define DO(guard, ...) :: atomic { guard -> __VA_ARGS__; what = 0; kind = 0; clean = 0; state = 0; s_err = 0; s_state = 0 }

active proctype steward()
{
	byte what, kind, state;
	bit clean;
life:
	{
		kill_steward == 0; /* until sandboxd has started it */
		down!LIST, 0;      /* steward/control.c control_start() */
end:		do
		DO(nempty(up) && (!listed || !resync), up?what, kind, clean; control_read(what, kind, clean))
		DO(listed && !subscribed && !kill_stored, subscribed = 1; resync = 1) /* steward/sweep.c subscribe() */
		DO(listed && resync, read_open())
		DO(listed && !resync && nempty(woken), woken?state; seen(state, 1)) /* steward/sweep.c sweep_heard() */
		DO(listed && !resync && in_queue && !have_run && !strays[WORK] && !strays[CHECK], start())
		DO(listed && again, run_tick())
		DO(listed && step == S_JUDGE, judge_ended())
		DO(listed && step == S_TREE, tree_ended())
		DO(listed && step == S_SETTLE, settle_try())
		DO(listed && waiting && faults > 0, faults--; late()) /* a deadline before its time */
		DO(timeout && listed && waiting, late())
#ifndef BREAK_DROP_WAKE
		DO(timeout && listed && unknown_to_steward, resync = 1)
#endif
		od
	} unless { kill_steward == 1 };
	/* Nothing of its memory outlives it; sandboxd starts it again. */
	d_step {
		step = S_NONE; boxes[WORK] = 0; boxes[CHECK] = 0; revoked = 0; cancelled = 0; unclean = 0; failed = 0;
		restart = 0; again = 0; gave_up = 0; asking = 0; in_queue = 0; resync = 0; listed = 0; strays[WORK] = 0; strays[CHECK] = 0;
		s_err = 0; s_state = 0; what = 0; kind = 0; clean = 0; state = 0;
		kill_steward = 2
	};
	goto life
}

