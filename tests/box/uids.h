/* Uids of one test's instance, so that two that run at once do not count each other's processes. */
#ifndef TESTS_BOX_UIDS_H
#define TESTS_BOX_UIDS_H
#include <stdint.h>

/* A range of 100,000 from here on, made of the instance's folder. */
static inline uint32_t test_uids(const char *folder)
{
	uint32_t hash = 2166136261u;
	for (; *folder != '\0'; folder++)
		hash = (hash ^ (unsigned char)*folder) * 16777619u;
	return 100000000u + hash % 20000u * 100000u;
}
#endif
