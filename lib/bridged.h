/*
 * An agent with a bridge: what stands before its command in a profile, and the descriptors that the runner gives to the
 * bridge, which is a process of its own uid.
 */
#ifndef LIB_BRIDGED_H
#define LIB_BRIDGED_H
#include <stdint.h>

#define BRIDGE_PATH "/opt/pinfold/pinfold-bridge"
enum bridge_fd {
	BRIDGE_FD_FROM = 0,   /* the agent's standard output */
	BRIDGE_FD_OUT = 1,    /* the transcript, and 2 as well */
	BRIDGE_FD_UPLOAD = 3, /* frames of bundle.msg, sealed: REQUEST and BRIDGE are for it */
	BRIDGE_FD_CLAIM = 4,  /* an empty memfd: the claim, a JSON text */
	BRIDGE_FD_READY = 5,  /* it writes BRIDGE_TALKS or BRIDGE_QUIET; only then is the agent started */
	BRIDGE_FD_ENDED = 6,  /* an int32_t when the agent has ended: its exit code, or minus the signal */
	BRIDGE_FD_TO = 7,     /* the agent's standard input, if it is spoken to */
	BRIDGE_FD__FIRST_FREE = 8
};
enum { BRIDGE_TALKS = 't', BRIDGE_QUIET = 'q' };
/* How many of these n words are the bridge's, with the "--" behind them; 0: the agent has none. */
uint32_t bridged_words(const char *const *argv, uint32_t n);
#endif
