/*
 * Where things are: compiled-in directories, all moved under PINFOLD_ROOT when that is set. Only
 * sandboxd, the configuration child and the CLI look here; the others learn places from the configuration.
 * And the descriptors that sandboxd gives to every child, so that no child needs a path or an option.
 */
#ifndef LIB_PLACE_H
#define LIB_PLACE_H
#include <stdbool.h>
#include <stddef.h>

enum place { PLACE_SYSCONF, PLACE_STATE, PLACE_LOG, PLACE_RUN, PLACE_LIBEXEC, PLACE_DATA, PLACE__COUNT };

/* Reads PINFOLD_ROOT. False: it is not an absolute path or makes socket names longer than 107 bytes. */
bool place_init(void);
const char *place_dir(enum place p); /* .../etc/pinfold, /var/lib/pinfold, /var/log/pinfold, /run/pinfold, ... */
const char *place_root(void);        /* "" outside an instance */

enum child_fd {
	CHILD_FD_CONTROL = 3, /* steward, gateway: sandboxd's pipe; others: end of it means sandboxd is gone */
	CHILD_FD_CONFIG = 4,  /* sealed memfd of conf.msg */
	CHILD_FD_SECRETS = 5, /* pipe, read to its end at start */
	CHILD_FD_LISTEN = 6,  /* stored: store.sock; fcgi: public/fcgi.sock */
	CHILD_FD_ADMIN = 7,   /* stored: admin.sock */
	CHILD_FD__FIRST_FREE = 8
};
/* What sandboxd writes into fcgi's control descriptor, a byte whenever it changes: who serves. */
enum child_up { CHILD_UP_STORED = 1, CHILD_UP_GATEWAY = 2, CHILD_UP_STEWARD = 4, CHILD_UP_ALL = 7 };
/*
 * And those of a box's runner. The agent gets none of them. From BOX_FD_CGROUP on, every open descriptor is
 * the cgroup.procs of one of the agent's groups (the v2 tree's, then what v1 holds): the child that becomes
 * the agent or a check writes "0" into each of them while it is still the runner's uid.
 */
enum box_fd {
	BOX_FD_UPLOAD = 3,  /* frames of bundle.msg, sealed */
	BOX_FD_RESULT = 4,  /* an empty memfd, to be appended to */
	BOX_FD_CONTROL = 5, /* a byte: the wall clock stands (1) or goes (0); end of it means sandboxd is gone */
	BOX_FD_CPU = 6,     /* cpu.stat of the agent's group in the v2 tree */
	BOX_FD_CGROUP = 7,
	BOX_FD_CGROUP_END = 10, /* at most three: a tree of processor time alone has no group of the agent's */
	BOX_FD_KEYS = 10,       /* sealed, the agent's keys, as CHILD_FD_SECRETS; not of every box */
	BOX_FD__FIRST_FREE = 11
};
enum box_kind { BOX_WORK = 1, BOX_CHECK = 2 };
enum { BOX_UIDS = 3 }; /* of each: the runner's, the agent's, the bridge's */
/* Names below the run directory. */
#define PLACE_STORE_SOCK "store/store.sock"
#define PLACE_ADMIN_SOCK "admin/admin.sock"
#define PLACE_FCGI_SOCK "public/fcgi.sock"
#endif
