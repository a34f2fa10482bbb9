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

static const uint64_t DAY_MS = 86400000;

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
	struct conf *conf = calloc(1, sizeof *conf);
	if (sv == NULL || conf == NULL)
		fatal("no memory");
	uint8_t config[SHA256_SIZE];
	uint64_t size;
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	if (!sha256_fd(CHILD_FD_CONFIG, config, &size))
		fatal("the configuration cannot be read: %m");
	const char *why = conf_load(conf, CHILD_FD_CONFIG);
	if (why != NULL)
		fatal("the configuration is not acceptable: %s", why);
	log_to((enum log_to)conf->global.log_to, conf->global.log_path);
	sv->conf = conf;
	sv->signal_fd = open_signals();
	sv->control_fd = given(CHILD_FD_CONTROL, "control");
	sv->listen_fd = given(CHILD_FD_LISTEN, "store.sock");
	sv->admin_fd = given(CHILD_FD_ADMIN, "admin.sock");
	const struct landlock_rule own[] = {{conf->global.state_dir, LL_ALL}, {conf->global.log_dir, LL_ALL}};
	if (!confine(CONFINE_STORED, own, sizeof own / sizeof own[0]))
		fatal("cannot confine this process: %m");
	sv->store = store_open(conf->global.state_dir);
	struct audit_settings audit = {.redact = conf->global.audit_redact,
				       .max_bytes = conf->global.audit_max_bytes,
				       .generations = conf->global.audit_generations};
	sv->audit = audit_open(conf->global.log_dir, &audit);
	store_audit(sv->store, sv->audit);
	store_push_limits(sv->store, conf->global.push_per_minute, conf->global.push_per_hour);
	store_conf(sv->store, conf);
	audit_start(sv->audit, sv->store, config);
	const struct cf_global *g = &conf->global;
	struct keep keep = {.artifacts = DAY_MS * g->keep_artifacts_days,
			    .runs = DAY_MS * g->keep_runs_days,
			    .tokens = DAY_MS * g->keep_tokens_days};
	prune_init(&sv->prune, &keep);
	log_info("ready");
	server_run(sv);
	store_audit(sv->store, NULL);
	audit_close(sv->audit);
	store_close(sv->store);
	conf_free(conf);
	free(conf);
	free(sv);
	return 0;
}
