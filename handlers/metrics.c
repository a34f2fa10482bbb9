/* GET /metrics: what stored counted, as it says it, and the event streams here. GET /openapi.json: the document made
 * with this program. */
#include "gen/openapi.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/buf.h"
#include "lib/lack.h"

enum { TEXT_MAX = 4096 };

static void put_streams(struct buf *b, const struct app *app)
{
	struct stream_figures f;
	if (app->figures == NULL)
		return;
	app->figures(app->figures_ctx, &f);
	buf_addf(b,
		 "# HELP pinfold_streams_open Event streams that are open.\n# TYPE pinfold_streams_open gauge\n"
		 "pinfold_streams_open %u\n",
		 f.open);
	buf_addf(
	    b,
	    "# HELP pinfold_streams_opened_total Event streams begun.\n# TYPE pinfold_streams_opened_total counter\n"
	    "pinfold_streams_opened_total %llu\n",
	    (unsigned long long)f.opened);
	buf_addf(b,
		 "# HELP pinfold_streams_refused_total Event streams refused, since there were too many.\n"
		 "# TYPE pinfold_streams_refused_total counter\npinfold_streams_refused_total %llu\n",
		 (unsigned long long)f.refused);
	buf_addf(b,
		 "# HELP pinfold_streams_slow_total Event streams cut, since they were not read.\n"
		 "# TYPE pinfold_streams_slow_total counter\npinfold_streams_slow_total %llu\n",
		 (unsigned long long)f.slow);
}

void handle_metrics(struct request *rq, struct reply *rp)
{
	struct st_metrics question = {0};
	struct st_metrics_are answer;
	if (!run_no_query(rq, rp))
		return;
	enum err e = st_call_metrics(rq->ask, &question, NULL, &answer, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	buf_init(&b, TEXT_MAX);
	put_streams(&b, rq->app);
	if (buf_failed(&b)) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	reply_head(rp, (struct reply_head){.status = 200,
					   .type = "text/plain; version=0.0.4",
					   .length = (int64_t)answer.text.n + (int64_t)b.n});
	reply_body(rp, answer.text.p, answer.text.n);
	reply_body(rp, b.p, b.n);
}

void handle_openapi(struct request *rq, struct reply *rp)
{
	if (!run_no_query(rq, rp))
		return;
	reply_head(rp, (struct reply_head){.status = 200, .type = "application/json", .length = (int64_t)openapi_size});
	reply_body(rp, openapi_json, openapi_size);
}
