/* The second wall around a box's files. What listens in a box may do so at any port, so TCP is left to the network
 * namespace. */
#include "lib/landlock.h"
#include "sandboxd/box_plan.h"

/* Nothing in /proc need be written: /dev/stdout leads to what is open, not to a file of /proc's. */
enum { RUN = LL_READ | LL_EXECUTE, USE = LL_READ | LL_EXECUTE | LL_WRITE_FILE };

static const struct landlock_rule rules[] = {
    {"/", LL_READ_DIR},   {"/usr", RUN},    {"/lib", RUN},          {"/lib64", RUN}, {"/bin", RUN},
    {"/sbin", RUN},       {"/etc", RUN},    {"/opt", RUN},          {"/proc", RUN},  {"/dev", USE},
    {"/dev/shm", LL_ALL}, {"/tmp", LL_ALL}, {"/workspace", LL_ALL},
};

bool box_landlock(void)
{
	return landlock_enter(rules, sizeof rules / sizeof rules[0], 0);
}

bool box_landlock_has(enum step extra)
{
	return landlock_abi() >= (extra == STEP_LANDLOCK_TRUNCATE ? LL_ABI_TRUNCATE
				  : extra == STEP_LANDLOCK_IOCTL  ? LL_ABI_IOCTL
								  : LL_ABI_SCOPES);
}
