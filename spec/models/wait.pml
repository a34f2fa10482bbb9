/*
 * Waiting for a person, from the store's word to the agent's group: the agent asks and goes on in another thread, which calls
 * its model; the steward stops the clock and has it frozen; somebody decides, cancels, or nobody does. The steward, stored and
 * sandboxd may be killed at any instant, and a wake-up may be lost. See README.md for how to read and run it; what a decision
 * is worth is in approval.pml.
 *
 * What holds:
 *   - an agent that is frozen always goes on or dies: it is not when everything has come to rest;
 *   - it is not frozen beside a model call for longer than a wake-up takes, nor when it is asked to end;
 *   - a question ends though its agent is frozen, does not look, and nobody answers;
 *   - the clock of the wall time goes when nothing waits;
 *   - no deadlock, and (no cycle) an end.
 */
#ifndef FAULTS
#define FAULTS 2 /* kills and lost wake-ups */
#endif

byte faults = FAULTS;

/* The store: questions that wait, whether the run is cancelled, a unit whose call has not ended. All of it is durable when
 * anybody is told; that is approval.pml's and budget.pml's business. */
byte pending;
bit cancelled, call, calls_over;

/* The box: its agent, and what its runner keeps of time. */
bit alive = 1, frozen, stands, ending, agent_done;

/* The steward: what it is to hear, and what it believes. */
bit wake, lost_wake, steward_dead;
chan pipe = [3] of { byte };
#define FREEZE 1 /* PAUSE: stands, frozen */
#define STAND 2  /* PAUSE: stands */
#define GO 3     /* PAUSE: neither */
#define TERM 4
#define KILL 5

inline tell() /* store/notify.c notify_all() */
{
	if
	:: wake = 1
	:: faults > 0 -> faults--; lost_wake = 1
	fi
}

#define can (alive && !frozen && !ending)

active proctype agent()
{
	byte questions = 2;
	do
	:: questions > 0 ->
		if
		:: atomic { can && !cancelled -> pending++; questions--; tell() } /* store/questions.c question_ask() */
		:: atomic { !alive || ending || cancelled -> break }
		fi;
		/* It looks each half second, and goes on when its question is over. */
		if
		:: atomic { can && pending == 0 -> skip }
		:: atomic { !alive || ending -> break }
		fi
	:: questions == 0 -> break
	od;
	atomic { questions = 0; agent_done = 1; wake = 1 }
}

/* Its other thread. */
active proctype caller()
{
	bit slow;
	if
	:: atomic { can && !cancelled -> /* store/op_capability.c op_cap_consume() */
		call = 1;
#ifndef BREAK_CALL_UNSEEN
		if
		:: pending > 0 -> tell()
		:: else
		fi
#endif
		};
		if
		:: true
		:: slow = 1
		fi;
		/* The provider takes its time: all others have come to rest. */
		if
		:: atomic { slow && timeout && !wake && !lost_wake && !steward_dead -> slow = 0; assert(!frozen) }
		:: !slow || !alive -> slow = 0
		fi;
		atomic { call = 0; tell() } /* store/op_capability.c op_model_called() */
	:: true
	fi;
	calls_over = 1
}

active proctype people()
{
	do
	:: atomic { pending > 0 && !cancelled -> pending--; tell() } /* store/op_approvals.c op_approval_decide() */
	:: atomic { !cancelled -> cancelled = 1; pending = 0; tell(); break } /* store/op_runs.c op_run_cancel() */
	:: break
	od
}

active proctype steward()
{
end:	do
	/* Started anew: it knows nothing, and what it did not start must go (steward/control.c found()). */
	:: atomic { steward_dead && len(pipe) < 3 -> steward_dead = 0; wake = 0; lost_wake = 0; pipe!KILL }
	:: atomic { !steward_dead && alive && wake && len(pipe) < 2 ->
		wake = 0;
		if
		:: agent_done -> pipe!KILL /* steward/run.c end_box() */
		:: !agent_done && cancelled && !ending -> pipe!GO; pipe!TERM /* steward/run.c run_cancel() */
		:: !agent_done && cancelled && ending
		/* steward/wait.c look(), set() */
		:: !agent_done && !cancelled && pending > 0 && !call -> pipe!FREEZE
		:: !agent_done && !cancelled && pending > 0 && call -> pipe!STAND
		:: !agent_done && !cancelled && pending == 0 -> pipe!GO
		fi }
#ifndef BREAK_NO_RESYNC
	/* The next reading of all open runs (steward/sweep.c read_open()). */
	:: atomic { timeout && !steward_dead && alive && lost_wake -> lost_wake = 0; wake = 1 }
#endif
#ifndef BREAK_NOBODY_LOOKS
	/* A question's time is over: the store said when that is, and is asked then (steward/wait.c wait_tick()). */
	:: atomic { timeout && !steward_dead && alive && pending > 0 && !lost_wake -> pending = 0; tell() }
#else
	/* The agent looks itself, as it did before it was frozen (store/op_approvals.c op_approval_get()). */
	:: atomic { timeout && can && pending > 0 && !lost_wake -> pending = 0; tell() }
#endif
	:: atomic { timeout && !steward_dead && alive && ending && len(pipe) == 0 -> pipe!KILL } /* asked to end, and does not */
	:: atomic { !alive && (wake || lost_wake) -> wake = 0; lost_wake = 0 }
	od
}

active proctype sandboxd()
{
	byte order;
end:	do
	:: atomic { pipe?order ->
		if
		/* sandboxd/box.c box_pause() */
		:: order == FREEZE && alive && !ending -> frozen = 1; stands = 1
		:: order == STAND && alive && !ending -> frozen = 0; stands = 1
		:: order == GO && alive && !ending ->
#ifndef BREAK_TERM_FROZEN
			frozen = 0;
#endif
			stands = 0
		:: order == TERM && alive -> /* sandboxd/box.c go() */
			ending = 1;
#ifndef BREAK_TERM_FROZEN
			frozen = 0;
#endif
			assert(!frozen)
		:: order == KILL -> alive = 0; frozen = 0; ending = 0; stands = 0
		:: else
		fi;
		order = 0 }
	od
}

inline drain()
{
	do
	:: len(pipe) > 0 -> pipe?_
	:: else -> break
	od
}

active proctype plug()
{
	do
	/* Stored: its subscribers come again and read all (steward/sweep.c subscribe()). */
	:: atomic { faults > 0 && !wake -> faults--; wake = 1; lost_wake = 0 }
	:: atomic { faults > 0 && !steward_dead && alive -> faults--; steward_dead = 1; drain() }
	/* Sandboxd, and all that it started. */
	:: atomic { faults > 0 && alive ->
		faults--; alive = 0; frozen = 0; stands = 0; ending = 0; steward_dead = 0; wake = 0; lost_wake = 0; drain() }
	:: break
	od
}

/* What time does when nothing else happens. */
#ifdef BREAK_NO_RESYNC
#define lost_is_found 0
#else
#define lost_is_found lost_wake
#endif
#ifdef BREAK_NOBODY_LOOKS
#define looked_at (can && pending > 0)
#else
#define looked_at (pending > 0 && !lost_wake)
#endif
#define time_passes (alive && (lost_is_found || ending || looked_at))

active proctype finally()
{
	atomic { timeout && !time_passes && calls_over -> skip };
	assert(!frozen && !stands);
	assert(agent_done && !alive)
}
