/*
 * The budget of a run: two calls of the gateway that ask stored for a unit each (or the same again, when the
 * connection broke), and the steward's revocation, while stored may be killed at any instant and the
 * gateway may stop waiting (or be killed: its question is then as far as it came).
 * There are four questions and two units. See README.md for how to read and run it.
 *
 * What holds:
 *   - never a unit over: what was forwarded to a provider is at most what the budget has;
 *   - never a unit given back: what is used never falls below what was told, across any kill;
 *   - a question that is asked again is charged once;
 *   - no consume succeeds after a revocation: one that is first asked when the revocation was told is refused,
 *     and after the transaction of the revocation none is charged;
 *   - the answer of a call in flight is not delivered when the revocation was told before the gateway looked a last time;
 *   - an answer is true after any kill, because it is sent behind the flush;
 *   - every question gets an answer or its asker gives up: no deadlock, and (no cycle) an end.
 *
 * A call that was charged before the revocation may hear so after it: it is in flight, its unit is spent, and the last
 * look keeps its answer back.
 */
#ifndef FAULTS
#define FAULTS 2 /* kills, and waits that are over */
#endif
#ifndef UNITS
#define UNITS 2
#endif
#define CALLS 2
#define REVOKER 2
#define NOBODY 3

#define OK 0
#define NO 1
#define UNAVAILABLE 2

byte faults = FAULTS;
bit kill_stored;

/* In memory, and on the disk: the capability, what it has used, and the last question of each client with its answer. */
bit m_cap = 1, d_cap = 1;
byte m_used, d_used;
byte m_kept_op[3], d_kept_op[3], m_kept[3], d_kept[3];

chan ask[3] = [1] of { byte, bit }; /* operation id; 1: MODEL_CALLED, the last look */
chan answer[3] = [1] of { byte };   /* error; of the last look OK: deliver */
chan stale = [1] of { byte, byte, bit };
bit broken[3], over[3], asked[3], unanswered[3];
byte batch_err[4], batched;
byte next_op[3];

/* What was told and done. */
bit told_revoked, revoked_once;
byte forwarded;
byte questions;

/* --- stored: each operation one transaction, one flush for a batch, then the answers (store/batch.c) ------------ */

/* who asked, which question, where the answer is put. */
inline consume(who, op, to) /* store/op_capability.c op_cap_consume(), store/batch.c op_again() */
{
	if
#ifndef BREAK_NO_OPERATION_ID
	:: m_kept_op[who] == op -> batch_err[to] = m_kept[who]
	:: m_kept_op[who] > op -> batch_err[to] = NO /* overtaken */
#endif
	:: else ->
		if
		:: !m_cap || m_used >= UNITS -> batch_err[to] = NO
		:: else ->
			assert(!revoked_once);
			m_used++;
			assert(m_used <= questions);
			batch_err[to] = OK
		fi;
		/* A refusal is not kept: asked again, it is refused again (store/op.h ST_OP_KEPT). */
		if
		:: batch_err[to] == OK -> m_kept_op[who] = op; m_kept[who] = OK
		:: else
		fi
	fi
}

/* Is the capability still there? Answered before the flush: nobody holds us to it after a crash. */
inline look(who) /* store/op_capability.c op_model_called(), store/batch.c send_early() */
{
	answer[who]!(m_cap -> OK : NO)
}

inline revoke() /* store/op_steward.c op_cap_revoke() */
{
	m_cap = 0;
	revoked_once = 1;
	batch_err[REVOKER] = OK
}

inline flush() /* store/env.c store_flush() */
{
	d_step {
		d_cap = m_cap; d_used = m_used;
#ifdef BREAK_KEPT_APART
		/* the kept answers are written later, in a transaction of their own */
#else
		d_kept_op[0] = m_kept_op[0]; d_kept[0] = m_kept[0];
		d_kept_op[1] = m_kept_op[1]; d_kept[1] = m_kept[1]
#endif
	}
}

inline send_one(who)
{
	if
	:: unanswered[who] ->
		unanswered[who] = 0;
		answer[who]!batch_err[who];
		told_revoked = (told_revoked || who == REVOKER);
		batch_err[who] = 0
	:: else -> batch_err[who] = 0
	fi
}

inline send_answers() /* store/batch.c send_answer() */
{
	send_one(0);
	send_one(1);
	send_one(REVOKER);
	batched = 0
}

active proctype stored()
{
	byte op, who;
	bit last;
end_serve:
	{
		do
		:: atomic { ask[0]?op, last ->
			if
			:: last -> look(0)
			:: else -> consume(0, op, 0); unanswered[0] = 1
			fi;
			batched = 1; op = 0; last = 0 }
		:: atomic { ask[1]?op, last ->
			if
			:: last -> look(1)
			:: else -> consume(1, op, 1); unanswered[1] = 1
			fi;
			batched = 1; op = 0; last = 0 }
		:: atomic { ask[REVOKER]?op, last -> revoke(); unanswered[REVOKER] = 1; batched = 1; op = 0 }
		/* A question of somebody who has given up; its answer goes nowhere. */
		:: atomic { stale?who, op, last ->
			if
			:: last
			:: else -> consume(who, op, NOBODY)
			fi;
			batch_err[NOBODY] = 0; batched = 1; who = 0; op = 0; last = 0 }
		:: batched -> break
		od;
#ifdef BREAK_ANSWER_FIRST
		atomic { send_answers() };
		atomic { flush(); goto end_serve }
#elif defined BREAK_KEPT_APART
		atomic { flush() };
		atomic {
			d_kept_op[0] = m_kept_op[0]; d_kept[0] = m_kept[0];
			d_kept_op[1] = m_kept_op[1]; d_kept[1] = m_kept[1];
			send_answers();
			goto end_serve
		}
#else
		atomic { flush(); send_answers(); goto end_serve }
#endif
	} unless { kill_stored };
	atomic { /* recovery: store/env.c open_env() */
		if
		:: m_cap = d_cap; m_used = d_used;
			m_kept_op[0] = d_kept_op[0]; m_kept[0] = d_kept[0]; m_kept_op[1] = d_kept_op[1]; m_kept[1] = d_kept[1]
#ifndef BREAK_KEPT_APART
		:: flush() /* what was committed and not flushed may be there as well */
#endif
		fi;
		revoked_once = !m_cap;
#ifdef BREAK_GIVE_BACK
		/* "calls that nobody finished did not happen" */
		if
		:: m_used > 0 -> m_used--; d_used = m_used
		:: else
		fi;
#endif
		assert(m_used >= forwarded);
		assert(!told_revoked || !m_cap);
		op = 0; who = 0; last = 0;
		batch_err[0] = 0; batch_err[1] = 0; batch_err[REVOKER] = 0;
		kill_stored = 0;
		goto end_serve
	}
}

/* --- a question: lib/ask.c ask_call() ------------------------------------------------------------------------------ */

inline call(me, op, is_last, err)
{
	asked[me] = 1;
	ask[me]!op, is_last;
	do
	:: answer[me]?err -> break
	:: broken[me] ->
		broken[me] = 0;
#ifdef BREAK_NO_OPERATION_ID
		next_op[me]++;
		ask[me]!next_op[me], is_last
#else
		ask[me]!op, is_last
#endif
	:: over[me] -> err = UNAVAILABLE; break
	od;
	asked[me] = 0;
	over[me] = 0
}

/* --- the gateway: body, unit, then forward (gateway/admit.c gate_chat(), consume()) ------------------------------- */

proctype gate(byte me)
{
	byte err, calls;
	bit late;
	do
	:: calls < 2 ->
		atomic {
			calls++;
			next_op[me]++;
			questions++;
			late = told_revoked;
#ifdef BREAK_REMEMBERS
			err = (late -> OK : NO); /* "it was active a moment ago" */
			if
			:: late
			:: else -> call(me, next_op[me], 0, err)
			fi;
#else
			call(me, next_op[me], 0, err);
#endif
			assert(err != OK || !late);
			if
			:: err == OK ->
				forwarded++;
				assert(forwarded <= UNITS);
				/* The provider has answered; whoever is gone in the meantime gets nothing. */
				late = told_revoked;
#ifndef BREAK_NO_LAST_LOOK
				next_op[me]++;
				call(me, next_op[me], 1, err);
#endif
				assert(err != OK || !late)
			:: else
			fi;
			err = 0; late = 0
		}
	:: calls == 2 -> break
	od
}

active proctype revoker() /* steward/tell.c tell_revoke(): asked until it is told */
{
	byte err = UNAVAILABLE;
	do
	:: atomic { err == UNAVAILABLE -> call(REVOKER, 1, 0, err) }
	:: err != UNAVAILABLE -> break
	od
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------- */

inline cut(me)
{
	if
	:: asked[me] && !over[me] && empty(answer[me]) -> /* what was sent is there to be read */
		do
		:: ask[me]?_, _
		:: empty(ask[me]) -> break
		od;
		unanswered[me] = 0;
		broken[me] = 1
	:: !asked[me] || over[me] || nempty(answer[me])
	fi
}

inline stored_dies()
{
	kill_stored = 1;
	cut(0);
	cut(1);
	cut(REVOKER);
	do
	:: stale?_, _, _
	:: empty(stale) -> break
	od;
	batched = 0
}

/* The asker hangs up: SIGSTOP of stored, or the gateway's own end. What lies in the connection may still be read. */
inline give_up(me)
{
	if
	:: unanswered[me] -> unanswered[me] = 0
	:: nempty(ask[me]) ->
		if
		:: nfull(stale) && me != REVOKER -> ask[me]?g_op, g_last; stale!me, g_op, g_last
		:: ask[me]?g_op, g_last
		fi
	:: nempty(answer[me]) -> answer[me]?_
	:: !unanswered[me] && empty(ask[me]) && empty(answer[me])
	fi;
	broken[me] = 0;
	over[me] = 1;
	g_op = 0;
	g_last = 0
}
byte g_op;
bit g_last;

active proctype plug()
{
	atomic { run gate(0); run gate(1) };
	do
	:: atomic { faults > 0 && !kill_stored -> faults--; stored_dies() }
	:: atomic { faults > 0 && asked[0] && !over[0] -> faults--; give_up(0) }
	:: atomic { faults > 0 && asked[1] && !over[1] -> faults--; give_up(1) }
	:: atomic { faults > 0 && asked[REVOKER] && !over[REVOKER] -> faults--; give_up(REVOKER) }
	:: break
	od
}

/* --- the end --------------------------------------------------------------------------------------------------------- */

active proctype finally()
{
	timeout;
	assert(d_used >= forwarded && d_used <= UNITS);
	assert(told_revoked && !d_cap)
}
