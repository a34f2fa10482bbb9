/*
 * pinfold-conf: the short-lived, unprivileged child of sandboxd that parses the configuration.
 * Reads the files, writes typed messages to descriptor 3, says what is wrong on standard error.
 * Never runs as root, never sees a secret.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/conf_read.h"
#include "lib/conf.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/place.h"

int main(void)
{
	log_open("pinfold-conf");
	if (geteuid() == 0)
		fatal("refuses to parse the configuration as root; \"pinfold config check\" is the command for people");
	if (!place_init())
		unfit("PINFOLD_ROOT must be an absolute path of at most 68 characters, without spaces");
	const struct landlock_rule own = {place_dir(PLACE_SYSCONF), LL_READ};
	if (!confine(CONFINE_CONF, &own, 1))
		fatal("cannot confine this process: %m");
	if (!conf_read(3))
		return UNFIT;
	/* What each daemon will find: here nothing happens to anybody when it is wrong. */
	static struct conf c;
	const char *why = fcntl(3, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0
			      ? conf_load(&c, 3)
			      : "it cannot be sealed";
	if (why != NULL)
		unfit("the configuration is not acceptable: %s", why);
	return 0;
}
