/* Any bytes as a request target: what is accepted is canonical, and stays so. */
#include "fcgi/gate.h"
#include "fcgi/ingress.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[INGRESS_PATH], again[INGRESS_PATH];
	const char *query;
	char *uri = malloc(size + 1);
	if (uri == NULL)
		return 0;
	memcpy(uri, data, size);
	uri[size] = '\0';
	if (uri_parse(uri, path, &query) == URI_OK) {
		if (uri_parse(path, again, &query) != URI_OK || strcmp(path, again) != 0 ||
		    strstr(path, "//") != NULL || strstr(path, "/../") != NULL)
			abort();
	}
	free(uri);
	static struct gate g;
	gate_read(&g, data, size);
	return 0;
}
