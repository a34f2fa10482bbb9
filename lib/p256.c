/* See p256.h. */
#include "lib/p256.h"
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>

bool p256_point(const uint8_t *p, size_t n)
{
	errno = 0;
	if (n != P256_POINT || p[0] != POINT_CONVERSION_UNCOMPRESSED)
		return false;
	EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	EC_POINT *point = group != NULL ? EC_POINT_new(group) : NULL;
	/* That it is on the curve is part of the conversion. */
	bool on = point != NULL && EC_POINT_oct2point(group, point, p, n, NULL) == 1;
	unsigned long why = on ? 0 : ERR_peek_last_error();
	if (!on && (point == NULL || ERR_GET_REASON(why) == ERR_R_MALLOC_FAILURE))
		errno = ENOMEM;
	ERR_clear_error();
	EC_POINT_free(point);
	EC_GROUP_free(group);
	return on;
}
