/*
 * Other embedded stores behind the store's own socket, for bench/engines only: the same frames, the same records, the
 * same operation (CAP_CONSUME), one transaction and one commit for each. Nothing of it is in the product.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum engine_table { ENGINE_CAPABILITY, ENGINE_RUN, ENGINE_OPERATION, ENGINE_TABLES };

/* Every function ends the program with a sentence when it fails. */
struct engine {
	const char *name;
	void (*open)(const char *dir); /* an empty folder */
	void (*begin)(void);
	/* Bytes copied to out, 0: there is no such record. */
	size_t (*get)(enum engine_table t, const uint8_t *key, size_t n, uint8_t *out, size_t cap);
	void (*put)(enum engine_table t, const uint8_t *key, size_t n, const uint8_t *value, size_t len);
	void (*commit)(void);
};
extern const struct engine engine_sqlite_full, engine_sqlite_normal, engine_lmdb;

/* Makes runs b0 to b(runs-1) of tenant "bench", then serves sock until it is killed. */
void engine_serve(const struct engine *e, const char *sock, const char *dir, unsigned runs) __attribute__((noreturn));
#endif
