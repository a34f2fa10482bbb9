/*
 * Questions of one agent: it asks twice for the same action, Ann and Ben may answer, Ben's device is revoked or somebody
 * cancels, and the run ends at some point. Stored may be killed at any instant. See README.md for how to read and run it; that
 * the agent is frozen meanwhile is in wait.pml.
 *
 * What holds:
 *   - a decision is durable before the agent hears of it, and before who decided does: after any kill it is what they were told;
 *   - the first decision stays, and is the one that everybody hears;
 *   - nothing is allowed once the run has ended or is cancelled, and nothing by a device whose revocation was told;
 *   - what was allowed for the rest of the run is not asked again, also after a kill;
 *   - every question ends; no deadlock, and (no cycle) an end.
 */
#include "approval_fsm.pml"
#ifndef FAULTS
#define FAULTS 2 /* kills */
#endif

#define AGENT 0
#define ANN 1
#define BEN 2
#define OTHERS 3 /* who revokes, who cancels, and the steward that ends the run: one after the other */
#define CLIENTS 4

#define NOT_ASKED 9

/* Decisions; and answers beyond them. */
#define NOTHING 0
#define ONCE 1
#define SESSION 2
#define DENY 3
#define WAITS 4
#define OVER 5
#define DONE 6
#define REFUSED 7
#define BROKEN 8

byte faults = FAULTS;

/* In memory, and on the disk: each question and what it came to, the grant, the run, Ben's token. */
byte m_q[2] = NOT_ASKED, d_q[2] = NOT_ASKED, m_d[2], d_d[2];
bit m_grant, d_grant, m_cancel, d_cancel, m_end, d_end, m_ben = 1, d_ben = 1;

/* Each client's question: not there, done and not flushed, answered. */
byte state[CLIENTS], res[CLIENTS];
#define IDLE 0
#define UNFLUSHED 1
#define ANSWERED 2

bit alive = 1; /* the box */

/* What was told. */
byte told[2];
bit told_revoked, told_end, agent_done;

#define waits (m_q[0] == APPROVAL_PENDING || m_q[1] == APPROVAL_PENDING)
#define owes (state[AGENT] == UNFLUSHED || state[ANN] == UNFLUSHED || state[BEN] == UNFLUSHED || state[OTHERS] == UNFLUSHED)

byte to; /* scratch, 0 between steps */
bit no;

/* --- stored: each operation one transaction, one flush for a batch, then the answers (store/batch.c) ------------------ */

inline become(q, event) /* store/questions.c question_step() */
{
	to = m_q[q];
	approval_step(m_q[q], event, to, no);
	if
	:: !no -> m_q[q] = to
	:: else
	fi;
	to = 0; no = 0
}

inline over(q, event)
{
	if
	:: m_q[q] == APPROVAL_PENDING -> become(q, event)
	:: else
	fi
}

inline ask_person(q) /* store/questions.c question_ask(), fate() */
{
	if
	:: m_end -> res[AGENT] = REFUSED
	:: !m_end && m_q[q] != NOT_ASKED -> res[AGENT] = DONE /* the same again */
	:: !m_end && m_q[q] == NOT_ASKED ->
		m_q[q] = APPROVAL_PENDING;
		res[AGENT] = DONE;
		if
		:: m_cancel -> become(q, APPROVAL_EV_ABANDON)
		:: !m_cancel && m_grant -> m_d[q] = SESSION; become(q, APPROVAL_EV_GRANT)
		:: else
		fi
	fi;
	state[AGENT] = UNFLUSHED
}

inline poll(q) /* store/op_approvals.c op_approval_get() */
{
	if
	:: m_end -> res[AGENT] = OVER
	:: !m_end && m_q[q] == APPROVAL_DECIDED -> res[AGENT] = m_d[q]
	:: !m_end && m_q[q] == APPROVAL_EXPIRED -> res[AGENT] = OVER
	:: else -> res[AGENT] = WAITS
	fi;
	state[AGENT] = UNFLUSHED
}

inline decide(who, q, d) /* store/op_approvals.c op_approval_decide(), decider() */
{
	to = m_q[q];
	if
#ifndef BREAK_DEVICE_REMEMBERED
	:: who == BEN && !m_ben -> res[who] = REFUSED
#endif
	:: m_q[q] == NOT_ASKED -> res[who] = REFUSED
	:: m_q[q] != NOT_ASKED && m_q[q] != APPROVAL_DECIDED && m_end -> res[who] = REFUSED
	:: else ->
#ifndef BREAK_SECOND_WINS
		approval_step(m_q[q], APPROVAL_EV_DECIDE, to, no);
#endif
		if
		:: no && m_q[q] == APPROVAL_DECIDED -> res[who] = m_d[q] /* the first, as it was */
		:: no && m_q[q] != APPROVAL_DECIDED -> res[who] = REFUSED
		:: !no ->
			assert(!told_revoked || who != BEN);
			assert(!m_cancel && !m_end);
			m_q[q] = APPROVAL_DECIDED;
			m_d[q] = d;
#ifndef BREAK_GRANT_APART
			m_grant = (m_grant || d == SESSION);
#endif
			res[who] = DONE
		fi
	fi;
	to = 0; no = 0;
	state[who] = UNFLUSHED
}

inline finish() /* store/run_end.c run_end() */
{
	m_end = 1;
#ifndef BREAK_END_LEAVES
	over(0, APPROVAL_EV_ABANDON);
	over(1, APPROVAL_EV_ABANDON);
#endif
	res[OTHERS] = DONE;
	state[OTHERS] = UNFLUSHED
}

inline cancel() /* store/op_runs.c op_run_cancel() */
{
	if
	:: m_end
	:: else ->
		m_cancel = 1;
		over(0, APPROVAL_EV_ABANDON);
		over(1, APPROVAL_EV_ABANDON)
	fi;
	res[OTHERS] = DONE;
	state[OTHERS] = UNFLUSHED
}

inline flush() /* store/env.c store_flush() */
{
	d_q[0] = m_q[0]; d_q[1] = m_q[1]; d_d[0] = m_d[0]; d_d[1] = m_d[1];
	d_grant = m_grant; d_cancel = m_cancel; d_end = m_end; d_ben = m_ben
}

inline send_one(w)
{
	if
	:: state[w] == UNFLUSHED -> state[w] = ANSWERED
	:: else
	fi
}

inline send_answers() /* store/batch.c send_answer() */
{
	send_one(AGENT); send_one(ANN); send_one(BEN); send_one(OTHERS)
}

inline break_off(w)
{
	if
	:: state[w] == UNFLUSHED -> state[w] = ANSWERED; res[w] = BROKEN
	:: else
	fi
}

inline recover() /* store/env.c open_env() */
{
	if
	:: m_q[0] = d_q[0]; m_q[1] = d_q[1]; m_d[0] = d_d[0]; m_d[1] = d_d[1];
		m_grant = d_grant; m_cancel = d_cancel; m_end = d_end; m_ben = d_ben
	:: flush() /* what was committed and not flushed may be there as well */
	fi;
	assert(told[0] == NOTHING || (m_q[0] == APPROVAL_DECIDED && m_d[0] == told[0]));
	assert(told[1] == NOTHING || (m_q[1] == APPROVAL_DECIDED && m_d[1] == told[1]));
	assert(told[0] != SESSION || m_grant);
	assert(!told_revoked || !m_ben);
	assert(!told_end || m_end);
	break_off(AGENT); break_off(ANN); break_off(BEN); break_off(OTHERS)
}

active proctype stored()
{
end:	do
#ifdef BREAK_ANSWER_FIRST
	:: atomic { owes -> send_answers() };
		atomic { flush() }
#else
	/* A kill between the two is like one before: what was flushed is there, and nobody heard. */
	:: atomic { owes -> flush(); send_answers() }
#endif
	od
}

/* --- who asks: again when the connection broke (lib/ask.c ask_call()) ------------------------------------------------- */

inline heard(me, a)
{
	atomic { state[me] == ANSWERED -> a = res[me]; res[me] = 0; state[me] = IDLE }
}

inline agent_hears(a)
{
	if
	:: atomic { alive && state[AGENT] == ANSWERED -> a = res[AGENT]; res[AGENT] = 0; state[AGENT] = IDLE }
	:: atomic { !alive -> goto dead }
	fi
}

inline agent_asks(q, a)
{
	a = BROKEN;
	do
	:: a == BROKEN ->
		if
		:: atomic { alive -> ask_person(q) }
		:: atomic { !alive -> goto dead }
		fi;
		agent_hears(a)
	:: else -> break
	od
}

/* Each half second; what it is told in between changes nothing. */
inline agent_looks(q, a)
{
	a = BROKEN;
	do
	:: a == BROKEN ->
		if
		:: atomic { alive && (m_end || m_q[q] != APPROVAL_PENDING) -> poll(q) }
		:: atomic { !alive -> goto dead }
		fi;
		agent_hears(a)
	:: else -> break
	od
}

inline agent_acts(q, a) /* agent/approve.c read_decision() */
{
	if
	:: atomic { !alive -> goto dead }
	:: atomic { alive && (a == ONCE || a == SESSION) ->
		assert(d_q[q] == APPROVAL_DECIDED && d_d[q] == a);
		assert(told[q] == NOTHING || told[q] == a);
		assert(!told_end) }
	:: atomic { alive && a != ONCE && a != SESSION -> skip }
	fi
}

active proctype agent()
{
	byte a;
	bit granted;
	agent_asks(0, a);
	agent_looks(0, a);
	agent_acts(0, a);
	granted = (a == SESSION);
	agent_asks(1, a); /* the same action again */
	atomic { assert(!granted || m_cancel || m_end || (m_q[1] == APPROVAL_DECIDED && m_d[1] == SESSION)); granted = 0 };
	agent_looks(1, a);
	agent_acts(1, a);
dead:	atomic { granted = 0; a = 0; agent_done = 1 }
}

inline decides(me, q, d, a)
{
	a = BROKEN;
	do
	:: a == BROKEN ->
		atomic { state[me] == IDLE -> decide(me, q, d) };
		atomic { state[me] == ANSWERED ->
			a = res[me]; res[me] = 0; state[me] = IDLE;
			if
			:: a == DONE ->
				assert(told[q] == NOTHING);
				assert(m_q[q] == APPROVAL_DECIDED && m_d[q] == d);
				told[q] = d
			:: else
			fi }
	:: else -> break
	od
}

active proctype ann()
{
	byte a;
	if
	:: decides(ANN, 0, ONCE, a)
	:: decides(ANN, 0, SESSION, a)
	:: true
	fi;
	a = 0
}

active proctype ben()
{
	byte a;
	if
	:: m_ben; /* handlers/authority.c authority_check(): who it is, is asked when the request begins */
		decides(BEN, 0, DENY, a)
	:: true
	fi;
	a = 0
}

active proctype others()
{
	byte a;
	if
	:: a = BROKEN;
		do
		:: a == BROKEN -> atomic { m_ben = 0; res[OTHERS] = DONE; state[OTHERS] = UNFLUSHED }; heard(OTHERS, a)
		:: else -> break
		od;
		told_revoked = 1
	:: a = BROKEN;
		do
		:: a == BROKEN -> atomic { cancel() }; heard(OTHERS, a)
		:: else -> break
		od
	:: true
	fi;
	/* The end, when the agent has ended, or at any moment; in either case behind its box (steward/settle.c settle_try()). */
	atomic { a = BROKEN; alive = 0 };
	do
	:: a == BROKEN -> atomic { finish() }; heard(OTHERS, a)
	:: else -> break
	od;
	told_end = 1
}

/* A question's time is over, sooner or later: whoever looks then (the agent, the steward, who decides) ends it. */
active proctype clock()
{
	do
	:: atomic { waits -> over(0, APPROVAL_EV_LATE); over(1, APPROVAL_EV_LATE) } /* store/questions.c questions_late() */
	:: atomic { agent_done -> break }
	od
}

active proctype plug()
{
	do
	:: atomic { faults > 0 -> faults--; recover() }
	:: break
	od
}

active proctype finally()
{
	timeout;
	assert(agent_done && m_end && !waits && told_end)
}
