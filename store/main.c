/*
 * pinfold-stored: the only process that opens the store.
 *
 * Theory of operation. One thread, one loop (batch.c). Clients are the other processes of Pinfold and the
 * operator's command line; they connect to two sockets that sandboxd made, and a peer's uid is its role.
 * Each message is one operation (op_*.c): a whole transaction over tables (t_*.c) of a private
 * Berkeley DB environment (env.c, txn.c), with large blobs in files (blobs.c). All operations of one turn
 * share one flush of the log; only then their answers are sent and subscribers are woken (notify.c).
 * So whatever was answered survives a kill at any instant, and recovery, once at start, needs nobody.
 *
 * Trusts its configuration and descriptors, which come from sandboxd. Never sees a secret in clear, never
 * touches the network, never waits for a client.
 */
#include "lib/conf.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/log_to.h"
#include "lib/place.h"
#include "lib/secret.h"
#include "store/offline.h"
#include "store/server.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_signals(void)
{
	sigset_t set;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		fatal("cannot block signals: %m");
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		fatal("cannot read signals: %m");
	return fd;
}

/* A descriptor that sandboxd gave us. */
static int given(int fd, const char *what)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		fatal("descriptor %d (%s) is missing: this program is started by pinfold-sandboxd only", fd, what);
	return fd;
}

int main(int argc, char **argv)
{
	log_open("pinfold-stored");
	if (!undumpable())
		fatal("cannot turn off core dumps: %m");
	umask(077);
	if (argc > 1)
		return offline(argc, argv);
	struct server *sv = calloc(1, sizeof *sv);
	const char *why;
	if (sv == NULL)
		fatal("no memory");
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	struct held *first = config_load(CHILD_FD_CONFIG, &why);
	if (first == NULL)
		fatal("the configuration is not acceptable: %s", why);
	const struct cf_global *g = &first->conf.global;
	log_to((enum log_to)g->log_to, g->log_path);
	sv->signal_fd = open_signals();
	sv->control_fd = given(CHILD_FD_CONTROL, "control");
	sv->listen_fd = given(CHILD_FD_LISTEN, "store.sock");
	sv->admin_fd = given(CHILD_FD_ADMIN, "admin.sock");
	const struct landlock_rule own[] = {{g->state_dir, LL_ALL}, {g->log_dir, LL_ALL}};
	if (!confine(CONFINE_STORED, own, sizeof own / sizeof own[0]))
		fatal("cannot confine this process: %m");
	sv->store = store_open(g->state_dir);
	sv->audit = audit_open(g->log_dir, &(struct audit_settings){.redact = g->audit_redact,
								    .max_bytes = g->audit_max_bytes,
								    .generations = g->audit_generations});
	store_audit(sv->store, sv->audit);
	audit_start(sv->audit, sv->store, first->own);
	config_start(sv, first);
	log_info("ready");
	server_run(sv);
	store_audit(sv->store, NULL);
	audit_close(sv->audit);
	store_close(sv->store);
	held_done(sv->reload.place.now);
	for (int by = 0; by < METRIC_BY__COUNT; by++)
		free(sv->told[by].p);
	free(sv);
	return 0;
}
