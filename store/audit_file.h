/* The files of the audit log: opened safely, appended to, rotated. Knows nothing of what a line means. */
#ifndef STORE_AUDIT_FILE_H
#define STORE_AUDIT_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_file {
	int dir, fd;
	uint64_t size;
	uint32_t generations;
	bool complained; /* about a rotation that failed */
};

enum { AUDIT_TAIL = 65536 };

/* Ends the program with a sentence where log_dir or the file cannot be trusted. */
void audit_file_open(struct audit_file *f, const char *log_dir, uint32_t generations);
void audit_file_close(struct audit_file *f);
/* All of it or nothing. False with errno. */
bool audit_file_add(struct audit_file *f, const void *p, size_t n, bool durable);
/* The present file becomes generation 1 and an empty one takes its place. False: it goes on in the present one. */
bool audit_file_rotate(struct audit_file *f);
/* Up to AUDIT_TAIL last bytes of the newest file that holds anything; *current: it is the present one. The
 * caller frees; NULL: there is nothing. */
char *audit_file_tail(struct audit_file *f, size_t *n, bool *current);
#endif
