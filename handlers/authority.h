/* Who asks, and may they: the two checks between routing and the body. */
#ifndef HANDLERS_AUTHORITY_H
#define HANDLERS_AUTHORITY_H
#include "handlers/request.h"

/* ERR_OK and *who, or ERR_UNAUTHORIZED (*say: a sentence that names the cause, or NULL), ERR_DEVICE_EXPIRED,
 * ERR_CROSS_ORIGIN_REFUSED or ERR_STORE_UNAVAILABLE. */
enum err authority_check(const struct app *app, const struct conf *conf, struct ask *a, const struct arrival *in,
			 struct principal *who, const char **say);
/*
 * True: *who is whose this API token was when stored was last asked. Only for a route whose first question to stored
 * carries the proof: stored then looks at the token before anything else, and refuses it as it would refuse PRINCIPAL.
 * A device is always asked about: when it was seen is written down.
 */
bool authority_guess(const struct app *app, const struct arrival *in, struct principal *who, struct proof *proof);
/* May this principal use this route, at this address? ERR_OK, ERR_FORBIDDEN, ERR_DEVICE_REQUIRED or
 * ERR_TENANT_MISMATCH. */
enum err authority_permit(const struct principal *who, const struct route *route, const char *vhost_tenant);
#endif
