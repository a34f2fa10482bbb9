/* GET /metrics: what stored says, once it has been told what is counted here. GET /openapi.json: the document made
 * with this program. */
#include "gen/openapi.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/counts.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/ask.h"

void handle_metrics(struct request *rq, struct reply *rp)
{
	struct st_metrics question = {0};
	struct st_metrics_are answer;
	if (!run_no_query(rq, rp))
		return;
	enum err e = counts_tell(rq->app, rq->ask);
	if (e == ERR_OK)
		e = st_call_metrics(rq->ask, &question, NULL, &answer, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	reply_head(rp, (struct reply_head){
			   .status = 200, .type = "text/plain; version=0.0.4", .length = (int64_t)answer.text.n});
	reply_body(rp, answer.text.p, answer.text.n);
}

void handle_openapi(struct request *rq, struct reply *rp)
{
	if (!run_no_query(rq, rp))
		return;
	reply_head(rp, (struct reply_head){.status = 200, .type = "application/json", .length = (int64_t)openapi_size});
	reply_body(rp, openapi_json, openapi_size);
}
