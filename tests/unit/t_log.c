/* Log lines: where they go, how grave they are, and how many of the same. */
#include "lib/die.h"
#include "lib/log_to.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const kind = "a kind", *const other = "another kind";

static bool may(struct log_rows *r, uint64_t now, const char *k, const char *line)
{
	return log_may(r, now, k, line, strlen(line));
}

static void t_same(void **state)
{
	(void)state;
	static struct log_rows r;
	char told[LOG_TOLD + 64];
	const char *line = "<4>pinfold-x: warn: accept: no: room\n";
	for (int i = 0; i < LOG_SAME; i++)
		assert_true(may(&r, 1000, kind, line));
	for (int i = 0; i < 37; i++)
		assert_false(may(&r, 1000 + LOG_MINUTE_MS - 1, kind, line));
	assert_true(may(&r, 1000, kind, "<4>pinfold-x: warn: another\n"));
	assert_int_equal(log_due(&r, 1000 + LOG_MINUTE_MS - 1, false, told), 0);
	size_t n = log_due(&r, 1000 + LOG_MINUTE_MS, false, told);
	assert_int_equal(n, strlen(told));
	assert_string_equal(told, "<4>pinfold-x: warn: ... 37 more times: accept: no: room\n");
	assert_int_equal(log_due(&r, 1000 + LOG_MINUTE_MS, false, told), 0);
	/* The next minute begins anew, and what is kept back at an end is told. */
	for (int i = 0; i < LOG_SAME; i++)
		assert_true(may(&r, 1000 + LOG_MINUTE_MS, kind, line));
	assert_false(may(&r, 1000 + LOG_MINUTE_MS, kind, line));
	assert_true(log_due(&r, 1000 + LOG_MINUTE_MS, true, told) > 0);
	assert_string_equal(told, "<4>pinfold-x: warn: ... 1 more time: accept: no: room\n");
}

static void t_alike(void **state)
{
	(void)state;
	static struct log_rows r;
	char told[LOG_TOLD + 64], line[100];
	int said = 0;
	for (int i = 0; i < 3 * LOG_ALIKE; i++) {
		snprintf(line, sizeof line, "<4>pinfold-x: warn: request %d: 503\n", i);
		said += may(&r, 5, kind, line);
		assert_int_equal(may(&r, 5, other, "<2>pinfold-x: fatal: the end\n"), true);
	}
	assert_int_equal(said, LOG_ALIKE);
	assert_true(log_due(&r, 5 + LOG_MINUTE_MS, false, told) > 0);
	assert_string_equal(told, "<4>pinfold-x: warn: ... 400 more times: request 599: 503\n");
	/* Runs that start are no warning. */
	for (int i = 0; i < 3 * LOG_ALIKE; i++) {
		snprintf(line, sizeof line, "<6>pinfold-x: info: run %d starts\n", i);
		assert_true(may(&r, 5, kind, line));
	}
}

/* More kinds than rows: nothing is lost, what is counted stays counted. */
static void t_crowd(void **state)
{
	(void)state;
	static struct log_rows r;
	char told[LOG_TOLD + 64], line[100];
	unsigned said = 0, kept = 0;
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < 3 * LOG_ROWS; i++) {
			snprintf(line, sizeof line, "<3>pinfold-x: error: %u\n", i);
			if (may(&r, 5, i % 2 == 0 ? kind : other, line))
				said++;
			else
				kept++;
		}
	for (unsigned n; log_due(&r, 5, true, told) > 0; kept -= n)
		assert_int_equal(sscanf(told, "<3>pinfold-x: error: ... %u more", &n), 1);
	assert_int_equal(kept, 0);
	assert_true(said >= 2 * LOG_ALIKE);
}

/* A process of its own, whose standard error is a pipe, or the journal's stream, says a few lines. */
static size_t said(bool journal, enum log_to where, const char *path, char *text, size_t room)
{
	int ends[2];
	char stream[64];
	struct stat st;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		fstat(2, &st);
		snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev,
			 (uintmax_t)st.st_ino + (journal ? 0 : 1));
		setenv("JOURNAL_STREAM", stream, 1);
		log_open("pinfold-t");
		log_to(where, path);
		for (int i = 0; i < LOG_SAME + 5; i++)
			log_warn("again\x1b[31m");
		log_info("once");
		unfit("the end");
	}
	close(ends[1]);
	size_t n = 0;
	for (ssize_t got; (got = read(ends[0], text + n, room - 1 - n)) > 0;)
		n += (size_t)got;
	text[n] = '\0';
	close(ends[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == UNFIT);
	return n;
}

static void t_stderr(void **state)
{
	(void)state;
	char text[4096];
	said(false, LOG_TO_STDERR, "", text, sizeof text);
	assert_memory_equal(text, "pinfold-t: warn: again\\x1b[31m\n", 30);
	assert_non_null(
	    strstr(text, "\npinfold-t: warn: ... 5 more times: again\\x1b[31m\npinfold-t: fatal: the end\n"));
	said(true, LOG_TO_STDERR, "", text, sizeof text);
	assert_memory_equal(text, "<4>pinfold-t: warn: again", 25);
	assert_non_null(strstr(text, "\n<6>pinfold-t: info: once\n"));
	assert_non_null(strstr(text, "\n<4>pinfold-t: warn: ... 5 more times"));
	assert_non_null(strstr(text, "\n<2>pinfold-t: fatal: the end\n"));
}

/* "#" stands for a number. */
static bool alike(const char *got, const char *want)
{
	size_t n = strcspn(want, "#");
	if (want[n] == '\0')
		return strcmp(got, want) == 0;
	return strncmp(got, want, n) == 0 && strcmp(got + n + strspn(got + n, "0123456789"), want + n + 1) == 0;
}

static void t_sockets(void **state)
{
	(void)state;
	char dir[] = "/tmp/t_log.XXXXXX", path[64], text[4096], got[9000];
	static const struct {
		enum log_to where;
		const char *first, *last; /* "#": some number */
	} ways[] = {
	    {LOG_TO_SYSLOG, "<28>pinfold-t[#]: warn: again\\x1b[31m", "<26>pinfold-t[#]: fatal: the end"},
	    {LOG_TO_JOURNAL,
	     "PRIORITY=4\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=pinfold-t\nMESSAGE=pinfold-t: warn: again\\x1b[31m\n",
	     "PRIORITY=2\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=pinfold-t\nMESSAGE=pinfold-t: fatal: the end\n"}};
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/log", dir);
	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};
		snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
		int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		/* Nobody listens: nothing is lost. */
		assert_true(said(false, ways[i].where, path, text, sizeof text) > 0);
		assert_non_null(strstr(text, "pinfold-t: fatal: the end\n"));
		assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
		/* It would hold a few only, if it was not read: what does not fit goes to standard error. */
		said(false, ways[i].where, path, text, sizeof text);
		for (char *p = text; *p != '\0'; p = strchr(p, '\n') + 1)
			assert_memory_equal(p, "pinfold-t: ", 11);
		ssize_t n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);
		assert_true(n > 0);
		got[n] = '\0';
		assert_true(alike(got, ways[i].first));
		for (ssize_t more; (more = recv(fd, got, sizeof got - 1, MSG_DONTWAIT)) > 0;)
			got[more] = '\0';
		assert_true(strstr(text, "the end") != NULL || alike(got, ways[i].last));
		close(fd);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_same), cmocka_unit_test(t_alike),
					   cmocka_unit_test(t_crowd), cmocka_unit_test(t_stderr),
					   cmocka_unit_test(t_sockets)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
