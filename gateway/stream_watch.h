/*
 * What the events of a stream say together, of which none says it alone: a secret in pieces, and how much was said.
 * Pure; bounded memory. The texts that continue each other are those at the same place of events that are about the
 * same thing: a choice, a tool call, a block.
 */
#ifndef GATEWAY_STREAM_WATCH_H
#define GATEWAY_STREAM_WATCH_H
#include "gateway/format.h"
#include "lib/json.h"
#include "lib/secret.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WATCH_TEXTS = 64 }; /* that end as the key begins; of more, the one that said nothing for longest is forgotten */

struct stream_watch {
	const struct secret *key; /* NULL: none is looked for */
	struct watched {
		uint64_t place;
		uint64_t used; /* when, in events; 0: it is free */
		uint8_t *tail; /* the last bytes, fewer than the key's */
		size_t n;
		bool begins; /* it ends with the beginning of the key */
	} * texts;
	uint64_t events;
	uint64_t pieces, bytes; /* of what the model says */
};

enum watch_said { WATCH_FINE, WATCH_BEGINS, WATCH_KEY, WATCH_LACK };

void stream_watch_free(struct stream_watch *w);
/* WATCH_BEGINS: some text ends in the middle of the key, perhaps; the event must wait for what comes next. */
enum watch_said stream_watch_event(struct stream_watch *w, const struct format *f, const struct json *event);
/*
 * Tokens that were said at least, whatever the provider says of it. A piece is rarely less than a token, a token rarely
 * more than 16 bytes that are not blank, and where many pieces are tiny they are no tokens: four bytes are.
 */
uint64_t stream_watch_tokens(const struct stream_watch *w);
#endif
