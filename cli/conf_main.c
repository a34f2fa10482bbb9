/*
 * pinfold-conf: the short-lived, unprivileged child of sandboxd that parses the configuration.
 * Reads the files, writes typed messages to descriptor 3, says what is wrong on standard error.
 * Never runs as root, never sees a secret.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/conf_read.h"
#include "lib/die.h"
#include "lib/place.h"

int main(void)
{
	log_open("pinfold-conf");
	if (geteuid() == 0)
		fatal("refuses to parse the configuration as root; \"pinfold config check\" is the command for people");
	if (!place_init())
		fatal("PINFOLD_ROOT must be an absolute path of at most 68 characters, without spaces");
	return conf_read(3) ? 0 : 1;
}
