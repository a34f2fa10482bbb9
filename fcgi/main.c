/*
 * pinfold-fcgi: the public side. Takes requests from the web server over FastCGI, decides who asks, makes the
 * canonical value of what is asked, and lets stored do it. Holds no provider key and no signing secret, knows
 * nothing of boxes, keeps nothing: it may die at any instant.
 *
 * Descriptors are given by sandboxd (lib/place.h): 3 control, 4 configuration, 6 the listening socket.
 */
#include "fcgi/pool.h"
#include "fcgi/streams.h"
#include "fcgi/tell.h"
#include "handlers/counts.h"
#include "handlers/known.h"
#include "handlers/source.h"
#include "lib/chan.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/log_to.h"
#include "lib/place.h"
#include "lib/secret.h"
#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DEADLINE_MS = 30000 }; /* where the configuration says nothing */

/* As many descriptors as there may be. Returns how many. */
static uint32_t raise_files(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return 0;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_max < INT32_MAX ? (uint32_t)r.rlim_max : INT32_MAX;
}

/* Streams keep their descriptors for long, so they leave those that the most requests at a time can need: each its
 * connection and its thread's to stored. Where there are hardly any, each kind gets what it can. */
static uint32_t streams_most(uint32_t files, uint32_t threads)
{
	uint32_t others = 2 * threads + POOL_SPARE + 64;
	return files > 2 * others ? files - others : files > 16 ? files / 2 : 8;
}

static void close_on_exec(int fd)
{
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		fatal("descriptor %d is not open: start this program through pinfold-sandboxd", fd);
}

/* What is kept of it besides; the rest each request takes with its configuration. */
static void use(struct pool *pool, const struct cf_global *g)
{
	atomic_store(&pool->deadline_ms, g->request_deadline_ms > 0 ? g->request_deadline_ms : DEADLINE_MS);
	sources_most(pool->app->sources, g->auth_failures_per_minute);
}

static void taken(void *arg, struct held *now, struct held *before)
{
	(void)before;
	use(arg, &now->conf.global);
}

int main(void)
{
	static char store[200];
	static struct reload reload;
	static struct app app;
	static atomic_uint pauses;
	static struct pool pool;
	log_open("pinfold-fcgi");
	for (int fd = CHILD_FD_CONTROL; fd <= CHILD_FD_LISTEN; fd++)
		if (fd != CHILD_FD_SECRETS)
			close_on_exec(fd);
	if (!undumpable())
		fatal("cannot make this process undumpable: %m");
	const char *why;
	struct held *first = held_load(CHILD_FD_CONFIG, -1, &why);
	if (first == NULL)
		fatal("the configuration is not acceptable: %s", why);
	const struct cf_global *g = &first->conf.global;
	log_to((enum log_to)g->log_to, g->log_path);
	close(CHILD_FD_CONFIG);
	/* None of the secrets is for this role; should any arrive, it ends here unread. */
	close(CHILD_FD_SECRETS);
	signal(SIGPIPE, SIG_IGN);
	uint32_t files = raise_files();
	if (FCGX_Init() != 0)
		fatal("libfcgi does not start");
	if (fcntl(CHILD_FD_LISTEN, F_SETFL, O_NONBLOCK) != 0)
		fatal("the listening socket: %m");
	int n = snprintf(store, sizeof store, "%s/%s", g->run_dir, PLACE_STORE_SOCK);
	if (n < 0 || (size_t)n >= sizeof store)
		fatal("the run directory's name is too long");
	held_init(&reload.place, first);
	app.place = &reload.place;
	app.pauses = &pauses;
	app.empty = bundle_new("empty");
	if (app.empty < 0 || !bundle_seal(app.empty))
		fatal("cannot make a descriptor: %m");
	app.known = known_new();
	app.sources = sources_new(g->auth_failures_per_minute);
	app.counts = counts_new();
	if (app.known == NULL || app.sources == NULL || app.counts == NULL)
		fatal("no memory");
	pool.app = &app;
	pool.store_path = store;
	pool.listener = CHILD_FD_LISTEN;
	pool.reload = &reload;
	pool.most = g->fcgi_threads_max > 0 ? g->fcgi_threads_max : 1;
	pool.start = g->fcgi_threads > 0 ? g->fcgi_threads : 1;
	if (pool.start > pool.most)
		pool.start = pool.most;
	use(&pool, g);
	pool.streams = streams_new(&reload.place, store, streams_most(files, pool.most));
	if (pool.streams == NULL)
		fatal("cannot make the table of streams: %m");
	app.figures = streams_figures;
	app.figures_ctx = pool.streams;
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	if (!confine(CONFINE_FCGI, NULL, 0))
		fatal("cannot confine this process: %m");
	pool_init(&pool);
	if (!streams_start(pool.streams, &pool))
		fatal("cannot start the thread of the streams: %m");
	if (!tell_start(&app, store))
		fatal("cannot start the thread that tells what is counted: %m");
	reload.taken = taken;
	reload.arg = &pool;
	reload_start(&reload, CHILD_FD_CONTROL);
	pool_run(&pool);
	/* Threads may still hold requests; there is nothing to save, and nothing to free that exit does not. */
	_exit(0);
}
