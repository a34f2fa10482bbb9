/* A provider's event stream: what goes on, what its end is, and every other end, by rows, at once and byte by byte. */
#include "gateway/stream_in.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* these before it */
#include <cmocka.h>

#define CHUNK "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n"
#define STOP "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define DONE "data: [DONE]\n\n"
#define USAGE "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n"
#define FEWER "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":1}}\n\n"
#define TYPED(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define MESSAGE TYPED("message_start", ",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}")
#define DELTA TYPED("message_delta", ",\"usage\":{\"output_tokens\":9}")
#define PART "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"index\":0}]}\n\n"
#define FINISH                                                                                           \
	"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":7," \
	"\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3}}\n\n"
#define COST "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":9}}\n\n"
#define BLOCKED "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n"
#define CALL(index)                                                                     \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":" index \
	",\"function\":{\"arguments\":\""
#define SAYS(index)                                                                                              \
	"event: response.output_text.delta\ndata: "                                                              \
	"{\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":" index \
	",\"delta\":\""
#define BLOCK                                                                                     \
	"event: content_block_delta\ndata: "                                                      \
	"{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\"," \
	"\"partial_json\":\""
#define KEY "sk-secret-0123456789"

static const struct row {
	const char *what;
	enum format_id f;
	const char *in, *out, *end; /* end NULL: it has not ended */
	enum stream_fault fault;
	unsigned prompt, completion;
} rows[] = {
    {"a chat", FORMAT_CHAT, CHUNK STOP DONE, CHUNK STOP, DONE, STREAM_FINE, 0, 0},
    {"with its usage", FORMAT_CHAT, CHUNK STOP USAGE DONE, CHUNK STOP USAGE, DONE, STREAM_FINE, 7, 3},
    {"what is told is not taken back", FORMAT_CHAT, CHUNK STOP USAGE FEWER DONE, CHUNK STOP USAGE FEWER, DONE,
     STREAM_FINE, 7, 3},
    {"a cut", FORMAT_CHAT, CHUNK "data: {\"cho", CHUNK, NULL, STREAM_FINE, 0, 0},
    {"a clean end in the middle", FORMAT_CHAT, CHUNK, CHUNK, NULL, STREAM_FINE, 0, 0},
    {"a finish without the end", FORMAT_CHAT, CHUNK STOP, CHUNK STOP, NULL, STREAM_FINE, 0, 0},
    {"an end without a finish", FORMAT_CHAT, CHUNK DONE, CHUNK, NULL, STREAM_BROKEN, 0, 0},
    {"an end whose last line is not there", FORMAT_CHAT, CHUNK STOP "data: [DONE]\n", CHUNK STOP, NULL, STREAM_FINE, 0,
     0},
    {"more behind the end", FORMAT_CHAT, CHUNK STOP DONE CHUNK, CHUNK STOP, DONE, STREAM_BROKEN, 0, 0},
    {"the end twice", FORMAT_CHAT, STOP DONE DONE, STOP, DONE, STREAM_BROKEN, 0, 0},
    {"an error event", FORMAT_CHAT, CHUNK "data: {\"error\":{\"message\":\"x\"}}\n\n" STOP DONE, CHUNK, NULL,
     STREAM_ERROR, 0, 0},
    {"broken JSON", FORMAT_CHAT, CHUNK "data: {\"a\":}\n\n", CHUNK, NULL, STREAM_BROKEN, 0, 0},
    {"a key twice", FORMAT_CHAT, "data: {\"a\":1,\"a\":2}\n\n", "", NULL, STREAM_BROKEN, 0, 0},
    {"no object", FORMAT_CHAT, "data: 1\n\n", "", NULL, STREAM_BROKEN, 0, 0},
    {"no UTF-8", FORMAT_CHAT, "data: {\"a\":\"\xff\"}\n\n", "", NULL, STREAM_BROKEN, 0, 0},
    {"its own spelling", FORMAT_CHAT, "data:  { \"a\" : \"\\u0041\" }\n\n", "data: {\"a\":\"A\"}\n\n", NULL,
     STREAM_FINE, 0, 0},
    {"other line ends", FORMAT_CHAT, "data: {\"a\":1}\r\n\r\ndata:{\"a\":2}\r\rdata: {\"a\":3}\n\n",
     "data: {\"a\":1}\n\ndata: {\"a\":2}\n\ndata: {\"a\":3}\n\n", NULL, STREAM_FINE, 0, 0},
    {"several lines of data", FORMAT_CHAT, "data: {\"a\":\ndata: 1}\n\n", "data: {\"a\":1}\n\n", NULL, STREAM_FINE, 0,
     0},
    {"what is left out", FORMAT_CHAT, ": a comment\nid: 7\nretry: 1\nx\n\n:\n\ndata: {}\nid: 8\n\n", "data: {}\n\n",
     NULL, STREAM_FINE, 0, 0},
    {"the key", FORMAT_CHAT, "data: {\"a\":\"x" KEY "\"}\n\n", "", NULL, STREAM_KEY, 0, 0},
    {"the key, spelt otherwise", FORMAT_CHAT, "data: {\"sk\\u002dsecret-0123456789\":1}\n\n", "", NULL, STREAM_KEY, 0,
     0},
    {"a page", FORMAT_CHAT, "<html>\n<body>\n\n</html>\n", "", NULL, STREAM_FINE, 0, 0},
    {"responses", FORMAT_RESPONSES,
     TYPED("response.created", "")
	 TYPED("response.completed", ",\"response\":{\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}"),
     TYPED("response.created", ""),
     TYPED("response.completed", ",\"response\":{\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}"), STREAM_FINE, 4,
     2},
    {"one that failed", FORMAT_RESPONSES, TYPED("response.failed", ""), "", TYPED("response.failed", ""), STREAM_FINE,
     0, 0},
    {"one that was cut short by itself", FORMAT_RESPONSES, TYPED("response.incomplete", ""), "",
     TYPED("response.incomplete", ""), STREAM_FINE, 0, 0},
    {"one without a name line", FORMAT_RESPONSES, "data: {\"type\":\"response.created\"}\n\n",
     TYPED("response.created", ""), NULL, STREAM_FINE, 0, 0},
    {"two names", FORMAT_RESPONSES, "event: response.created\ndata: {\"type\":\"response.completed\"}\n\n", "", NULL,
     STREAM_BROKEN, 0, 0},
    {"no name", FORMAT_RESPONSES, "event: response.created\ndata: {}\n\n", "", NULL, STREAM_BROKEN, 0, 0},
    {"a name with a line in it", FORMAT_RESPONSES, "data: {\"type\":\"a\\nb\"}\n\n", "", NULL, STREAM_BROKEN, 0, 0},
    {"an error of responses", FORMAT_RESPONSES, TYPED("error", ""), "", NULL, STREAM_ERROR, 0, 0},
    {"a chat's end of responses", FORMAT_RESPONSES, DONE, "", NULL, STREAM_BROKEN, 0, 0},
    {"messages", FORMAT_MESSAGES, MESSAGE TYPED("ping", "") DELTA TYPED("message_stop", ""),
     MESSAGE TYPED("ping", "") DELTA, TYPED("message_stop", ""), STREAM_FINE, 5, 9},
    {"messages without their stop", FORMAT_MESSAGES, MESSAGE DELTA, MESSAGE DELTA, NULL, STREAM_FINE, 5, 9},
    {"an error of messages", FORMAT_MESSAGES, MESSAGE TYPED("error", ",\"error\":{}"), MESSAGE, NULL, STREAM_ERROR, 5,
     1},
    {"gemini", FORMAT_GEMINI_STREAM, PART PART FINISH, PART PART, FINISH, STREAM_FINE, 7, 5},
    {"gemini at once", FORMAT_GEMINI_STREAM, FINISH, "", FINISH, STREAM_FINE, 7, 5},
    {"a cut of gemini", FORMAT_GEMINI_STREAM, PART "data: {\"candi", PART, NULL, STREAM_FINE, 0, 0},
    {"a clean end in the middle of gemini", FORMAT_GEMINI_STREAM, PART, PART, NULL, STREAM_FINE, 0, 0},
    {"a finish whose last line is not there", FORMAT_GEMINI_STREAM,
     PART "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n", PART, NULL, STREAM_FINE, 0, 0},
    {"what it cost behind the finish", FORMAT_GEMINI_STREAM, PART FINISH COST, PART, FINISH COST, STREAM_FINE, 8, 9},
    {"more behind the finish", FORMAT_GEMINI_STREAM, PART FINISH PART, PART, FINISH, STREAM_BROKEN, 7, 5},
    {"the finish twice", FORMAT_GEMINI_STREAM, PART FINISH FINISH, PART, FINISH, STREAM_BROKEN, 7, 5},
    {"a finish that gives no reason", FORMAT_GEMINI_STREAM,
     "data: {\"candidates\":[{\"finishReason\":\"FINISH_REASON_UNSPECIFIED\"}]}\n\n",
     "data: {\"candidates\":[{\"finishReason\":\"FINISH_REASON_UNSPECIFIED\"}]}\n\n", NULL, STREAM_FINE, 0, 0},
    {"a finish that is no text", FORMAT_GEMINI_STREAM, "data: {\"candidates\":[{\"finishReason\":1}]}\n\n",
     "data: {\"candidates\":[{\"finishReason\":1}]}\n\n", NULL, STREAM_FINE, 0, 0},
    {"a question that was refused", FORMAT_GEMINI_STREAM, BLOCKED, "", BLOCKED, STREAM_FINE, 0, 0},
    {"an error of gemini", FORMAT_GEMINI_STREAM, PART "data: {\"error\":{\"code\":503}}\n\n" FINISH, PART, NULL,
     STREAM_ERROR, 0, 0},
    {"an error of gemini behind the finish", FORMAT_GEMINI_STREAM, FINISH "data: {\"error\":{\"code\":503}}\n\n", "",
     FINISH, STREAM_ERROR, 7, 5},
    {"broken JSON of gemini", FORMAT_GEMINI_STREAM, PART "data: {\"a\":}\n\n", PART, NULL, STREAM_BROKEN, 0, 0},
    {"gemini's key", FORMAT_GEMINI_STREAM, "data: {\"a\":\"x" KEY "\"}\n\n", "", NULL, STREAM_KEY, 0, 0},
    {"a chat's end of gemini", FORMAT_GEMINI_STREAM, PART DONE, PART, NULL, STREAM_BROKEN, 0, 0},
    {"a list instead of events", FORMAT_GEMINI_STREAM, "[{\"candidates\":[{\"finishReason\":\"STOP\"}]}]\n\n", "", NULL,
     STREAM_FINE, 0, 0},
    {"gemini without comments", FORMAT_GEMINI_STREAM, ": hello\n\n" PART ": there\n\n" FINISH, PART, FINISH,
     STREAM_FINE, 7, 5},
    {"a chat's chunk in messages", FORMAT_MESSAGES, CHUNK, "", NULL, STREAM_BROKEN, 0, 0},
};

static void run(const struct row *r, size_t piece)
{
	struct secret key = {0};
	struct stream_in s;
	struct buf out own_buf = {0};
	size_t n = strlen(r->in);
	bool ok = true;

	secret_set(&key, KEY, strlen(KEY));
	buf_init(&out, 1 << 20);
	stream_in_init(&s, format_get(r->f), &key, 1 << 20);
	for (size_t at = 0; at < n && ok; at += piece)
		ok = stream_in_take(&s, r->in + at, n - at < piece ? n - at : piece, &out);
	const char *got = out.n ? buf_cstr(&out) : "", *end = s.ended ? buf_cstr(&s.end) : NULL;
	if (strcmp(got, r->out) != 0 || (end == NULL) != (r->end == NULL) || (end && strcmp(end, r->end) != 0) ||
	    s.fault != r->fault || ok != (r->fault == STREAM_FINE) || s.prompt_tokens != r->prompt ||
	    s.completion_tokens != r->completion)
		fail_msg("%s, by %zu: fault %d, ended %d, %s", r->what, piece, (int)s.fault, s.ended, got);
	if (!ok)
		assert_false(stream_in_take(&s, "\n", 1, &out));
	stream_in_free(&s);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t piece = 1; piece < 100; piece += piece < 4 ? 1 : 17)
			run(&rows[i], piece);
}

/* What has no end has a bound: bytes of all, of one line, of one event. */
static void test_bounds(void **state)
{
	static char line[STREAM_EVENT_MAX + 100];
	struct stream_in s;
	struct buf out own_buf = {0};

	(void)state;
	buf_init(&out, 1 << 20);
	stream_in_init(&s, format_get(FORMAT_CHAT), NULL, 10);
	assert_true(stream_in_take(&s, ":2345678\n", 9, &out));
	assert_false(stream_in_take(&s, ":\n", 2, &out));
	assert_int_equal(s.fault, STREAM_TOO_LARGE);
	stream_in_free(&s);
	memset(line, ' ', sizeof line);
	stream_in_init(&s, format_get(FORMAT_CHAT), NULL, SIZE_MAX);
	assert_false(stream_in_take(&s, line, sizeof line, &out));
	assert_int_equal(s.fault, STREAM_TOO_LARGE);
	stream_in_free(&s);
	stream_in_init(&s, format_get(FORMAT_CHAT), NULL, SIZE_MAX);
	memcpy(line, "data:", 5);
	line[STREAM_EVENT_MAX / 2] = '\n';
	bool ok = true;
	for (int i = 0; i < 4 && ok; i++)
		ok = stream_in_take(&s, line, STREAM_EVENT_MAX / 2 + 1, &out);
	assert_false(ok);
	assert_int_equal(s.fault, STREAM_TOO_LARGE);
	stream_in_free(&s);
}

/* Events that say pieces of a text, between them others of other texts, and then a whole end. */
static const struct talk {
	enum format_id f;
	const char *head, *tail; /* of an event, around a piece */
	const char *other, *end, *last;
} talks[] = {
    {FORMAT_CHAT, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"", "\"}}]}\n\n",
     "data: {\"id\":\"c\",\"choices\":[{\"index\":1,\"delta\":{\"content\":\"word \"}}]}\n\n", STOP, DONE},
    {FORMAT_CHAT, CALL("3"), "\"}}]}}]}\n\n", CALL("4") "{}\"}}]}}]}\n\n", STOP, DONE},
    {FORMAT_RESPONSES, SAYS("0"), "\"}\n\n", SAYS("1") "word \"}\n\n", "", TYPED("response.completed", "")},
    {FORMAT_GEMINI_STREAM, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"", "\"}]}}]}\n\n",
     "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"word \"}]},\"index\":1}]}\n\n", "",
     "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"},
    {FORMAT_MESSAGES, BLOCK, "\"}}\n\n", TYPED("ping", ""), "", TYPED("message_stop", "")},
};

struct said {
	struct buf in;
	const struct talk *t;
};

static void say(struct said *s, const char *text, size_t n, bool other)
{
	buf_adds(&s->in, s->t->head);
	buf_add(&s->in, text, n);
	buf_adds(&s->in, s->t->tail);
	if (other)
		buf_adds(&s->in, s->t->other);
}

/* One event that says many things. */
static void say_many(struct said *s)
{
	const char *type = s->t->f == FORMAT_RESPONSES || s->t->f == FORMAT_MESSAGES ? "\"type\":\"other\"," : "";

	buf_addf(&s->in, "data: {%s\"top\":[", type);
	for (int i = 0; i < 3 * WATCH_TEXTS; i++)
		buf_addf(&s->in, "%s\"%d\"", i > 0 ? "," : "", i);
	buf_adds(&s->in, "]}\n\n");
}

/* What it came to: of good, all of it goes on; of a key, never more of it than any word may begin with. */
static void told(struct said *s, size_t by, bool good, const char *what)
{
	struct secret key = {0};
	struct stream_in in;
	struct buf out own_buf = {0}, want own_buf = {0};
	bool ok = true;

	buf_init(&want, 1 << 20);
	buf_add(&want, s->in.p, s->in.n);
	buf_adds(&want, s->t->end);
	buf_adds(&s->in, s->t->end);
	buf_adds(&s->in, s->t->last);
	secret_set(&key, KEY, strlen(KEY));
	buf_init(&out, 1 << 20);
	stream_in_init(&in, format_get(s->t->f), &key, 1 << 20);
	for (size_t at = 0; at < s->in.n && ok; at += by)
		ok = stream_in_take(&in, s->in.p + at, s->in.n - at < by ? s->in.n - at : by, &out);
	if (good && (!ok || !in.ended || out.n != want.n || memcmp(out.p, want.p, out.n) != 0))
		fail_msg("%s, format %d: fault %d, %s", what, (int)s->t->f, (int)in.fault, buf_cstr(&out));
	/* The texts of the pieces that went out, one behind the other. */
	char text[4096] = "";
	for (const char *p = out.n ? buf_cstr(&out) : ""; (p = strstr(p, s->t->head)) != NULL; p++)
		strncat(text, p + strlen(s->t->head), strcspn(p + strlen(s->t->head), "\""));
	if (!good && (ok || in.fault != STREAM_KEY || strstr(text, "sk-secre")))
		fail_msg("%s, format %d: fault %d, told %s", what, (int)s->t->f, (int)in.fault, text);
	stream_in_free(&in);
	buf_free(&s->in);
}

static struct said begin_talk(const struct talk *t)
{
	struct said s = {.t = t};

	buf_init(&s.in, 1 << 20);
	return s;
}

/* The key in two events, at every place; in three; letter by letter; behind its own beginning; and what only begins
 * like it. */
static void test_key_in_pieces(void **state)
{
	static const char before[] = "and then ", alike[] = "sk-secret-012345678x and on";
	const size_t n = strlen(KEY);

	(void)state;
	for (const struct talk *t = talks; t < talks + sizeof talks / sizeof *talks; t++)
		for (int other = 0; other < 2; other++) {
			for (size_t at = 1; at < n; at++) {
				char text[200];
				struct said s = begin_talk(t);
				int head = snprintf(text, sizeof text, "%s%.*s", before, (int)at, KEY);
				say(&s, text, (size_t)head, other);
				int tail = snprintf(text, sizeof text, "%s behind", KEY + at);
				say(&s, text, (size_t)tail, other);
				told(&s, s.in.n + 100, false, "in two");
				for (size_t to = at + 1; to < n; to++) {
					s = begin_talk(t);
					say(&s, KEY, at, other);
					say(&s, KEY + at, to - at, other);
					say(&s, KEY + to, n - to, other);
					told(&s, 7, false, "in three");
				}
				s = begin_talk(t);
				say(&s, alike, at, other);
				say(&s, alike + at, strlen(alike) - at, other);
				told(&s, 7, true, "alike");
				s = begin_talk(t);
				say(&s, KEY, at, other);
				told(&s, 7, true, "a beginning, and then the end");
			}
			struct said s = begin_talk(t);
			for (size_t at = 0; at < n; at++)
				say(&s, KEY + at, 1, other);
			told(&s, 1, false, "letter by letter");
			s = begin_talk(t);
			say(&s, KEY, 7, other);
			say(&s, KEY, 5, other);
			say(&s, KEY + 5, n - 5, other);
			told(&s, 50, false, "behind its own beginning");
			for (size_t at = 1; at < n; at++) {
				s = begin_talk(t);
				say(&s, KEY, at, false);
				for (int i = 0; i < 2; i++)
					say_many(&s);
				say(&s, KEY + at, n - at, false);
				told(&s, 50, false, "with many other texts between, more than are watched");
			}
		}
}

/* What waits for whether the key goes on has a bound, and is whole when it goes on. */
static void test_held(void **state)
{
	struct secret key = {0};

	(void)state;
	secret_set(&key, KEY, strlen(KEY));
	for (int many = 10; many <= 3000; many *= 300) {
		struct said s = begin_talk(&talks[0]);
		struct stream_in in;
		struct buf out own_buf = {0};
		say(&s, KEY, 12, false);
		for (int i = 0; i < many; i++)
			buf_adds(&s.in, talks[0].other);
		buf_init(&out, 1 << 20);
		stream_in_init(&in, format_get(FORMAT_CHAT), &key, 1 << 22);
		assert_true(stream_in_take(&in, s.in.p, s.in.n, &out));
		assert_true(many < 1000 ? out.n == 0 : out.n > s.in.n - 2 * STREAM_HELD_MAX);
		assert_true(stream_in_take(&in, STOP DONE, strlen(STOP DONE), &out));
		buf_adds(&s.in, STOP);
		assert_int_equal(out.n, s.in.n);
		assert_memory_equal(out.p, s.in.p, out.n);
		stream_in_free(&in);
		buf_free(&s.in);
	}
}

/* So many events of so many letters each, under so many tokens: is it cut? */
static void test_tokens(void **state)
{
	static const struct {
		const char *what;
		int events, letters;
		unsigned most;
		bool cut;
	} loads[] = {
	    {"a token an event, as many as may be", 100, 4, 100, false},
	    {"one more", 101, 4, 100, true},
	    {"long pieces", 10, 160, 100, false},
	    {"longer ones", 10, 162, 100, true},
	    {"one piece of very much", 1, 10000, 100, true},
	    {"letter by letter, which are no tokens", 400, 1, 100, false},
	    {"more letters than that", 404, 1, 100, true},
	    {"no limit", 1000, 100, 0, false},
	};

	(void)state;
	for (const struct talk *t = talks; t < talks + sizeof talks / sizeof *talks; t++)
		for (size_t r = 0; r < sizeof loads / sizeof *loads; r++) {
			static char text[20000];
			struct stream_in in;
			struct buf out own_buf = {0};
			struct said s = begin_talk(t);
			memset(text, 'a', sizeof text);
			for (int i = 0; i < loads[r].events; i++)
				say(&s, text, (size_t)loads[r].letters, false);
			buf_adds(&s.in, t->end);
			buf_adds(&s.in, t->last);
			buf_init(&out, 1 << 20);
			stream_in_init(&in, format_get(t->f), NULL, 1 << 20);
			in.tokens_most = loads[r].most;
			bool ok = stream_in_take(&in, s.in.p, s.in.n, &out);
			if (ok == loads[r].cut || in.fault != (loads[r].cut ? STREAM_SPENT : STREAM_FINE) ||
			    (loads[r].cut && in.completion_tokens <= loads[r].most))
				fail_msg("%s, format %d: fault %d, %llu tokens", loads[r].what, (int)t->f,
					 (int)in.fault, (unsigned long long)in.completion_tokens);
			stream_in_free(&in);
			buf_free(&s.in);
		}
	/* By what it says itself: of what it read, and of what it wrote. */
	for (unsigned most = 13; most <= 14; most++) {
		struct stream_in in;
		struct buf out own_buf = {0};
		buf_init(&out, 1 << 20);
		stream_in_init(&in, format_get(FORMAT_MESSAGES), NULL, 1 << 20);
		in.tokens_most = most;
		assert_true(stream_in_take(&in, MESSAGE, strlen(MESSAGE), &out));
		assert_int_equal(stream_in_take(&in, DELTA, strlen(DELTA), &out), most == 14);
		assert_int_equal(in.completion_tokens, 9);
		stream_in_free(&in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_bounds),
					   cmocka_unit_test(test_key_in_pieces), cmocka_unit_test(test_held),
					   cmocka_unit_test(test_tokens)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
