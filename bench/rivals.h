/* What a box is compared with: the same program in bubblewrap, and in bare namespaces. */
#ifndef BENCH_RIVALS_H
#define BENCH_RIVALS_H
#include <stdbool.h>
#include <sys/types.h>

enum rival { RIVAL_BWRAP, RIVAL_BARE, RIVALS };
extern const char *const rival_name[RIVALS];

/* Is bubblewrap installed? */
bool rival_there(enum rival who);
/* Starts the program with `out` (or our own) as its standard output. */
pid_t rival_start(enum rival who, char *const argv[], int out);
/* Starts one and waits for its end: milliseconds, or -1. */
double rival_run(enum rival who);
/* So many started at once, until all have ended: milliseconds, or -1. */
double rival_burst(enum rival who, int many);
/* One that holds so many processes; what it takes from KILL until the last of them is gone: milliseconds, or -1. */
double rival_teardown(enum rival who, int processes);
/* Proportional set of an idle one with everything that belongs to it, in kB; 0: cannot be seen. */
unsigned long rival_memory(enum rival who, int many);
/* The program that is held: makes the processes, says so on standard output, and waits. Never returns. */
void rival_hold(int processes) __attribute__((noreturn));
/* Of one process, in kB. */
unsigned long memory_of(pid_t pid);
#endif
