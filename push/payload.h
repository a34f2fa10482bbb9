/* What a push says: ids, a count and a word, never a text that an agent wrote. The page's service worker makes a
 * sentence of it. */
#ifndef PUSH_PAYLOAD_H
#define PUSH_PAYLOAD_H
#include "gen/store_msg.h"
#include "lib/buf.h"

/* {"kind","runId","requestId","tag","count"}; a summary has neither run nor request. Added to b. */
void payload_write(struct buf *b, const struct st_push_is *m);
#endif
