/*
 * What can be known of an archive before anybody unpacks it: its type, by what is said and by how it begins. Nothing
 * more is read of it outside a sandbox.
 */
#ifndef HANDLERS_ARCHIVE_H
#define HANDLERS_ARCHIVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum archive_kind { ARCHIVE_NONE, ARCHIVE_TAR, ARCHIVE_GZIP, ARCHIVE_ZSTD };
enum { ARCHIVE_BEGIN = 512 /* bytes that are looked at */ };

/* A Content-Type, which may be NULL: application/x-tar, application/gzip or application/zstd, without parameters. */
enum archive_kind archive_type(const char *content_type);
/* How its first n bytes look. ARCHIVE_NONE also of an archive without anything in it. */
enum archive_kind archive_look(const uint8_t *p, size_t n);
/* A source's id: 64 hexadecimal digits of lower case. sha, where it is not NULL, gets the 32 bytes. */
bool archive_id(const char *s, uint8_t sha[32]);
#endif
